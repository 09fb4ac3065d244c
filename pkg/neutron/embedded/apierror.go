package embedded

import (
	"fmt"
	"net/http"
)

// apiError is an error in a response.
type apiError struct {
	status             int
	errorType, message string
}

// invalid rejects invalid values. Which type Neutron gives them depends on the check.
func invalid(errorType, format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, errorType, fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) *apiError {
	return invalid("HTTPBadRequest", format, args...)
}

func invalidInput(format string, args ...any) *apiError {
	return invalid("InvalidInput", "Invalid input for operation: "+format, args...)
}

// badResource rejects a request whose values contradict each other.
func badResource(resource, format string, args ...any) *apiError {
	return invalid("BadRequest", "Bad "+resource+" request: "+format, args...)
}

func conflict(errorType, format string, args ...any) *apiError {
	return &apiError{http.StatusConflict, errorType, fmt.Sprintf(format, args...)}
}

func notFound(errorType, format string, args ...any) *apiError {
	return &apiError{http.StatusNotFound, errorType, fmt.Sprintf(format, args...)}
}

var noSuchPath = notFound("HTTPNotFound", "The resource could not be found.")

// body returns the body of the response.
func (e *apiError) body() object {
	return object{"NeutronError": object{"type": e.errorType, "message": e.message, "detail": ""}}
}
