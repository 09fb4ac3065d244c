package openstack

import (
	"encoding/json"
	"time"
)

// The bounds of the values in a response. Neutron's own limits are 255 characters
// for a name, a description or a tag, 36 for an ID, and 50 tags.
const (
	maxText = 1024 // bytes
	maxID   = 64   // bytes
	maxTags = 1000
)

func isTooLong(text string) bool { return len(text) > maxText }

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

func isNoID(id string) bool { return !isID(id) }

func isOptionalID(id string) bool { return id == "" || isID(id) }

// descriptionOf returns a description in a response. Null is an empty text. Without a
// description, an object may be ours or not.
func descriptionOf(raw json.RawMessage) (text string, ok bool) {
	err := json.Unmarshal(raw, &text)
	return text, err == nil && !isTooLong(text)
}

// parseTime returns the zero Time for an invalid one: a Neutron may lack the
// extension for times, and only the clean-up of duplicates needs them.
func parseTime(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return t
}
