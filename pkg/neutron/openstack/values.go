package openstack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// The bounds of the values in an answer. Neutron's own limits are 255 characters
// for a name, a description or a tag, 36 for an ID, and 50 tags.
const (
	maxText = 1024 // bytes
	maxID   = 64   // bytes
	maxTags = 1000
)

// text is a text in an answer. Null is an empty text, as opposed to a missing key.
type text struct {
	value string
	found bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(raw []byte) error {
	t.found = true
	if text, plain := plainText(raw); plain {
		t.value = text
		return nil
	}
	return json.Unmarshal(raw, &t.value)
}

// plainText returns a text in valid JSON that is written as it is. Nearly all are, and a
// list has thousands.
func plainText(raw []byte) (text string, plain bool) {
	if len(raw) < 2 || raw[0] != '"' || bytes.IndexByte(raw, '\\') >= 0 || !utf8.Valid(raw) {
		return "", false
	}
	return string(raw[1 : len(raw)-1]), true
}

// field is a value in an answer with what it must be.
type field struct {
	key, value string
	isValid    func(string) bool
}

// checkFields returns an error that describes the first invalid field.
func checkFields(kind string, fields ...field) error {
	for _, f := range fields {
		if !f.isValid(f.value) {
			return unusable("it has a %s whose %s is %s", kind, f.key, quoted(f.value))
		}
	}
	return nil
}

func isText(value string) bool { return len(value) <= maxText }

// isID reports whether a text can be an ID. Others could change the path of a
// request.
func isID(id string) bool {
	for _, r := range id {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' {
			return false
		}
	}
	return id != "" && len(id) <= maxID
}

func isOptionalID(id string) bool { return id == "" || isID(id) }

// quoted returns a text for a message, or its length if it is long. Only a whole
// text is quoted: part of a secret could not be recognized.
func quoted(text string) string {
	if len(text) > maxText {
		return fmt.Sprintf("a text of %d bytes", len(text))
	}
	return strconv.Quote(text)
}
