package embedded

import (
	"fmt"
	"net/http"
)

// apiError is an error in an answer.
type apiError struct {
	status             int
	errorType, message string
}

// Neutron rejects an invalid value in one of two forms. Which one it uses depends
// on the check.

func badRequest(format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, "HTTPBadRequest", fmt.Sprintf(format, args...)}
}

func invalidInput(format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, "InvalidInput", "Invalid input for operation: " + fmt.Sprintf(format, args...)}
}

// badResource rejects a request whose values contradict each other.
func badResource(resource, format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, "BadRequest", "Bad " + resource + " request: " + fmt.Sprintf(format, args...)}
}

func conflict(errorType, format string, args ...any) *apiError {
	return &apiError{http.StatusConflict, errorType, fmt.Sprintf(format, args...)}
}

func notFound(errorType, format string, args ...any) *apiError {
	return &apiError{http.StatusNotFound, errorType, fmt.Sprintf(format, args...)}
}

var (
	noSuchPath = notFound("HTTPNotFound", "The resource could not be found.")
	tooLarge   = &apiError{http.StatusRequestEntityTooLarge, "HTTPRequestEntityTooLarge", "Request is too large."}
)

// body returns the body of the answer.
func (e *apiError) body() object {
	return object{"NeutronError": object{"type": e.errorType, "message": e.message, "detail": ""}}
}
