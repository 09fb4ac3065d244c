package main

import (
	"reflect"
	"testing"
)

// TestJoinLines: each description becomes one line; a field of that name is a schema, and stays.
func TestJoinLines(t *testing.T) {
	schema := map[string]any{"properties": map[string]any{"description": map[string]any{"description": "a\nb"}},
		"allOf": []any{map[string]any{"description": "c\nd", "default": "e\nf"}}}
	joinLines(schema)
	want := map[string]any{"properties": map[string]any{"description": map[string]any{"description": "a b"}},
		"allOf": []any{map[string]any{"description": "c d", "default": "e\nf"}}}
	if !reflect.DeepEqual(schema, want) {
		t.Errorf("got %v, want %v", schema, want)
	}
}
