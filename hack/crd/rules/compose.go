package rules

import (
	"regexp"
	"strings"
)

// Compose returns one rule that a value violates if it violates any of the rules. Its
// message is that of the first violated rule.
func (v Validation) Compose() Composed {
	composed := Composed{FieldPath: v.FieldPath, Message: v.Fallback, Rule: v.conditions("")}
	if v.OnlyIfChanged {
		composed.Rule = "oldSelf.hasValue() && self == oldSelf.value() ||" + v.space() + composed.Rule
	}
	composed.OptionalOldSelf = strings.Contains(composed.Rule, "oldSelf.hasValue()")
	if v.Fallback == "" {
		composed.Message = v.Rules[0].Message
	}
	if message := v.messages(v.Rules); message != quote(composed.Message) {
		composed.MessageExpression = message
	}
	return composed
}

// conditions joins the conditions of the rules in a scope, and in the scopes inside it.
func (v Validation) conditions(scope string) string {
	var comments, all []string
	written := map[string]bool{}
	for _, rule := range v.Rules {
		if rule.In == scope {
			comments, all = append(comments, v.comment(rule)), append(all, rule.Condition)
			continue
		}
		child := v.scope(rule.In)
		for child.Name != "" && child.In != scope {
			child = v.scope(child.In)
		}
		if child.Name == "" || written[child.Name] {
			continue
		}
		otherwise := v.negation(child)
		written[child.Name], written[otherwise.Name] = true, true
		comments, all = append(comments, ""), append(all, v.scoped(child, otherwise))
	}
	for i, condition := range all {
		if len(all) > 1 && strings.Contains(condition, "||") || strings.Contains(condition, " ?") {
			condition = "(" + condition + ")"
		}
		all[i] = comments[i] + condition
	}
	return strings.Join(all, " &&\n")
}

// scoped returns the conditions in a scope, for the values to which it applies, and
// those of the scope for all others.
func (v Validation) scoped(s, otherwise Scope) string {
	body := indent(v.conditions(s.Name))
	if variable, list := s.variable(); variable != "" {
		body = " " + list + ".all(" + variable + "," + body + ")"
	}
	if otherwise.Name != "" {
		return s.If + " ?" + body + " :" + indent(v.conditions(otherwise.Name))
	}
	return "!" + strings.ReplaceAll(s.If, " && ", " || !") + " ||" + body
}

// negation returns the scope of the values to which another one does not apply.
func (v Validation) negation(of Scope) Scope {
	for _, rule := range v.Rules {
		if scope := v.scope(rule.In); scope.In == of.In && scope.If == "!"+of.If {
			return scope
		}
	}
	return Scope{}
}

// variable returns the variable of a scope, and the list whose items it has in turn.
func (s Scope) variable() (name, list string) {
	if name, list, ok := strings.Cut(s.Each, " in "); ok {
		return name, list
	}
	if name, value, ok := strings.Cut(s.Let, " = "); ok {
		return name, "[" + value + "]"
	}
	return "", ""
}

// messages returns an expression for the message of the first rule that is violated.
// One of them is, so the last rule needs no condition.
func (v Validation) messages(rules []Rule) string {
	violation, message := v.violation(rules[0])
	if len(rules) > 1 {
		message = violation + " ?" + indent(message) + " :\n" + v.messages(rules[1:])
	}
	return v.comment(rules[0]) + message
}

// violation returns an expression for whether a value violates a rule, and one for the
// message if it does.
func (v Validation) violation(rule Rule) (violation, message string) {
	message, used := interpolate(rule.Message)
	violation = "!(" + rule.Condition + ")"
	for scope := v.scope(rule.In); scope.Name != ""; scope = v.scope(scope.In) {
		if variable, list := scope.variable(); variable != "" {
			if regexp.MustCompile(`\b` + variable + `\b`).MatchString(used) {
				filter := ""
				if scope.Each != "" {
					filter = " " + violation + ","
				}
				used += list + filter
				message = list + ".map(" + variable + "," + filter + indent(message) + ")[0]"
			}
			violation = list + ".exists(" + variable + ", " + violation + ")"
		}
		violation = scope.If + " && " + violation
	}
	return violation, message
}

// expression is an expression inside a message.
var expression = regexp.MustCompile(`\{([^}]*)\}`)

// interpolate returns an expression for a message, and the expressions in the message.
func interpolate(message string) (value, used string) {
	var parts []string
	for message != "" {
		at := expression.FindStringSubmatchIndex(message)
		if at == nil {
			parts = append(parts, quote(message))
			break
		}
		if at[0] > 0 {
			parts = append(parts, quote(message[:at[0]]))
		}
		part := message[at[2]:at[3]]
		if strings.Contains(part, "?") {
			part = "(" + part + ")"
		}
		parts, used, message = append(parts, part), used+" "+part, message[at[1]:]
	}
	return strings.Join(parts, " + "), used
}

func quote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}

// comment returns a line with the name of a rule, unless it is the only one.
func (v Validation) comment(rule Rule) string {
	if len(v.Rules) == 1 {
		return ""
	}
	return "// " + rule.Name + "\n"
}

// space separates parts of a rule.
func (v Validation) space() string {
	if len(v.Rules) == 1 {
		return " "
	}
	return "\n"
}

// indent returns a text on lines of its own.
func indent(text string) string {
	return strings.ReplaceAll("\n"+text, "\n", "\n  ")
}
