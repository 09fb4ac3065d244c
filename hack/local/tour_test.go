package main

import (
	"regexp"
	"slices"
	"testing"
)

// Both languages have each text, with the same values in the same order.
func TestWords(t *testing.T) {
	all := []words{starting, ready, pressEnter, ended, healed}
	for _, s := range steps {
		all = append(all, s.title, s.lesson)
	}
	verbs := regexp.MustCompile(`%[a-z]`)
	for _, w := range all {
		english, chinese := verbs.FindAllString(w.english, -1), verbs.FindAllString(w.chinese, -1)
		if w.english == "" || w.chinese == "" || !slices.Equal(english, chinese) {
			t.Errorf("%q and %q have the values %v and %v", w.english, w.chinese, english, chinese)
		}
	}
}
