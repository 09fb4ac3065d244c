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

func badRequest(format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, "HTTPBadRequest", fmt.Sprintf(format, args...)}
}

func invalidInput(format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, "InvalidInput", "Invalid input for operation: " + fmt.Sprintf(format, args...)}
}

func notFound(typeName, message string) *apiError {
	return &apiError{http.StatusNotFound, typeName + "NotFound", message}
}

func answerError(w http.ResponseWriter, failure *apiError) {
	answer(w, failure.status, object{"NeutronError": object{
		"type": failure.errorType, "message": failure.message, "detail": "",
	}})
}
