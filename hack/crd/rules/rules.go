// Package rules composes the rules in CEL of a CustomResourceDefinition.
package rules

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// Additions are what a CustomResourceDefinition has beyond the markers in Go.
type Additions struct {
	Defaults    []Default    `json:"defaults"`
	Validations []Validation `json:"validations"`
}

// Default is the default of the field at a path.
type Default struct {
	At    string `json:"at"`
	Value any    `json:"value"`
}

// Validation is a list of rules for the value at a path, such as spec.tags[]. The
// first rule that is violated is reported.
type Validation struct {
	At            string  `json:"at"`
	FieldPath     string  `json:"fieldPath"`     // where the error is reported, if not at the path
	OnlyIfChanged bool    `json:"onlyIfChanged"` // no rule runs if the value is the old one
	Fallback      string  `json:"fallback"`      // the message if no expression can be evaluated
	Scopes        []Scope `json:"scopes"`
	Rules         []Rule  `json:"rules"`
}

// Scope is a part of the specs, in which rules can use a variable.
type Scope struct {
	Name string `json:"name"`
	In   string `json:"in"`   // the surrounding scope
	If   string `json:"if"`   // calls that are joined by &&
	Let  string `json:"let"`  // "variable = expression"
	Each string `json:"each"` // "variable in list"
}

// Rule is a condition on a value, and the message for a value that violates it.
type Rule struct {
	Name      string `json:"name"`
	In        string `json:"in"` // a scope; the condition applies to its specs only
	Condition string `json:"condition"`
	Message   string `json:"message"` // {…} is an expression in CEL that returns a string
	// Stored and Rejects are examples of a spec, or of an object if the rule is for the
	// object. Rejects violates the rule, if need be as a change of Stored.
	Stored  map[string]any `json:"stored"`
	Rejects map[string]any `json:"rejects"`
}

// Composed is an item of x-kubernetes-validations.
type Composed struct {
	FieldPath         string `json:"fieldPath,omitempty" yaml:"fieldPath,omitempty"`
	Message           string `json:"message" yaml:"message"`
	MessageExpression string `json:"messageExpression,omitempty" yaml:"messageExpression,omitempty"`
	OptionalOldSelf   bool   `json:"optionalOldSelf,omitempty" yaml:"optionalOldSelf,omitempty"`
	Rule              string `json:"rule" yaml:"rule"`
}

// Read reads a schema.yaml.
func Read(path string) (Additions, error) {
	var additions Additions
	text, err := os.ReadFile(path)
	if err != nil {
		return additions, err
	}
	if err := yaml.UnmarshalStrict(text, &additions); err != nil {
		return additions, fmt.Errorf("reading %s: %w", path, err)
	}
	for _, validation := range additions.Validations {
		if err := validation.check(); err != nil {
			return additions, fmt.Errorf("reading %s: the rules for %q: %w", path, validation.At, err)
		}
	}
	return additions, nil
}

func (v Validation) check() error {
	if len(v.Rules) == 0 {
		return errors.New("there are none")
	}
	if v.Fallback == "" && expression.MatchString(v.Rules[0].Message) {
		return errors.New("the message of the first rule has an expression: add a fallback")
	}
	for _, rule := range v.Rules {
		if rule.In != "" && v.scope(rule.In).Name == "" {
			return fmt.Errorf("rule %q is in an unknown scope %q", rule.Name, rule.In)
		}
	}
	return nil
}

func (v Validation) scope(name string) Scope {
	for _, scope := range v.Scopes {
		if scope.Name == name {
			return scope
		}
	}
	return Scope{}
}
