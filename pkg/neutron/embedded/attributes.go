package embedded

import (
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"
)

// The checks of attributes return the value as it is kept.

func text(name string) func(any) (any, *apiError) {
	return func(value any) (any, *apiError) {
		text, ok := value.(string)
		switch {
		case !ok:
			return nil, badRequest("Invalid input for %s. Reason: '%v' is not a valid string.", name, value)
		case utf8.RuneCountInString(text) > 255:
			return nil, badRequest("Invalid input for %s. Reason: '%s' exceeds maximum length of 255.", name, text)
		}
		return text, nil
	}
}

func boolean(value any) (any, *apiError) {
	switch strings.ToLower(fmt.Sprint(value)) {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return nil, invalidInput("'%v' cannot be converted to boolean.", value)
}

func uuid(name string) func(any) (any, *apiError) {
	return func(value any) (any, *apiError) {
		text, _ := value.(string)
		if len(text) != 36 || strings.Trim(strings.ToLower(text), "0123456789abcdef-") != "" {
			return nil, badRequest("Invalid input for %s. Reason: '%v' is not a valid UUID.", name, value)
		}
		return text, nil
	}
}

func oneOf(name string, valid ...any) func(any) (any, *apiError) {
	return func(value any) (any, *apiError) {
		for _, v := range valid {
			if fmt.Sprint(v) == fmt.Sprint(value) {
				return v, nil
			}
		}
		return nil, badRequest("Invalid input for %s. Reason: %v is not in valid_values.", name, value)
	}
}

func wholeNumber(name string) func(any) (any, *apiError) {
	return func(value any) (any, *apiError) {
		number, ok := value.(float64)
		if !ok || number != float64(int(number)) || number < 0 {
			return nil, badRequest("Invalid input for %s. Reason: '%v' is not an integer.", name, value)
		}
		return int(number), nil
	}
}

func list(name string) func(any) (any, *apiError) {
	return func(value any) (any, *apiError) {
		items, ok := value.([]any)
		if !ok {
			return nil, badRequest("Invalid input for %s. Reason: '%v' is not a list.", name, value)
		}
		return items, nil
	}
}

// address takes null as well, for none.
func address(name string) func(any) (any, *apiError) {
	return func(value any) (any, *apiError) {
		if value == nil {
			return nil, nil
		}
		text, _ := value.(string)
		ip, err := netip.ParseAddr(text)
		if err != nil || ip.Zone() != "" {
			return nil, badRequest("Invalid input for %s. Reason: '%v' is not a valid IP address.", name, value)
		}
		return ip.String(), nil
	}
}
