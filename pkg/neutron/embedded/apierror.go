package embedded

import (
	"fmt"
	"net/http"
)

// apiError is an answer that says what is wrong with a request.
type apiError struct {
	status             int
	errorType, message string
}

// Neutron has two ways to say that a value is wrong. Which one it takes depends
// on where it finds out.

func badRequest(format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, "HTTPBadRequest", fmt.Sprintf(format, args...)}
}

func invalidInput(format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, "InvalidInput", "Invalid input for operation: " + fmt.Sprintf(format, args...)}
}

// badResource is a request that does not fit together as a whole.
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
	internalError = &apiError{http.StatusInternalServerError, "HTTPInternalServerError",
		"Request Failed: internal server error while processing your request."}
	noSuchPath       = notFound("HTTPNotFound", "The resource could not be found.")
	methodNotAllowed = &apiError{http.StatusMethodNotAllowed, "HTTPMethodNotAllowed",
		"The server could not comply with the request since it is either malformed or otherwise incorrect."}
	tooLarge = &apiError{http.StatusRequestEntityTooLarge, "HTTPRequestEntityTooLarge", "Request is too large."}
)

// body returns the JSON of the answer.
func (e *apiError) body() object {
	return object{"NeutronError": object{"type": e.errorType, "message": e.message, "detail": ""}}
}
