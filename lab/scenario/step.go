// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Step is one line of a script, a verb and its arguments, with the lines below it.
type Step struct {
	Verb  string
	Args  []Arg
	Input string
}

// Arg is an argument of a step: a word (no values), key=value or key=(a, b).
type Arg struct {
	Key    string
	Values []string
}

// String returns the step in script syntax.
func (s Step) String() string {
	words := []string{s.Verb}
	for _, a := range s.Args {
		switch len(a.Values) {
		case 0:
			words = append(words, a.Key)
		case 1:
			value := a.Values[0]
			if value == "" {
				value = "()"
			}
			words = append(words, a.Key+"="+value)
		default:
			words = append(words, a.Key+"=("+strings.Join(a.Values, ", ")+")")
		}
	}
	text := strings.Join(words, " ")
	if s.Input != "" {
		text += "\n" + s.Input
	}
	return text
}

// ParseStep parses one line: the first word is the verb.
func ParseStep(line string) (Step, error) {
	verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	step := Step{Verb: verb}
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		end := strings.IndexAny(rest, " =")
		if end < 0 || rest[end] == ' ' {
			word, after, _ := strings.Cut(rest, " ")
			step.Args, rest = append(step.Args, Arg{Key: word}), after
			continue
		}
		key, value := rest[:end], rest[end+1:]
		if !strings.HasPrefix(value, "(") {
			word, after, _ := strings.Cut(value, " ")
			step.Args, rest = append(step.Args, Arg{Key: key, Values: []string{word}}), after
			continue
		}
		inner, after, closed := strings.Cut(value[1:], ")")
		if !closed {
			return Step{}, fmt.Errorf("%q: a list of %s has no end", line, key)
		}
		step.Args, rest = append(step.Args, Arg{Key: key, Values: splitList(inner)}), after
	}
	return step, nil
}

// splitList returns at least one value, so that an empty list is not a word.
func splitList(text string) []string {
	values := strings.Split(text, ",")
	for i := range values {
		values[i] = strings.TrimSpace(values[i])
	}
	return values
}

// argReader consumes the arguments of a step and reports unused ones.
type argReader struct {
	step     Step
	argsLeft []Arg
	errs     []error
}

func newReader(step Step) *argReader {
	return &argReader{step: step, argsLeft: slices.Clone(step.Args)}
}

// takeArg removes and returns an argument.
func (r *argReader) takeArg(key string) (Arg, bool) {
	i := slices.IndexFunc(r.argsLeft, func(a Arg) bool { return a.Key == key })
	if i < 0 {
		return Arg{}, false
	}
	a := r.argsLeft[i]
	r.argsLeft = slices.Delete(r.argsLeft, i, i+1)
	return a, true
}

func (r *argReader) flagArg(key string) bool {
	_, ok := r.takeArg(key)
	return ok
}

func (r *argReader) listArg(key string) []string {
	a, _ := r.takeArg(key)
	return slices.DeleteFunc(slices.Clone(a.Values), func(v string) bool { return v == "" })
}

func (r *argReader) hasArg(key string) bool {
	return slices.ContainsFunc(r.argsLeft, func(a Arg) bool { return a.Key == key })
}

func (r *argReader) textArg(key, fallback string) string {
	a, ok := r.takeArg(key)
	if !ok {
		return fallback
	}
	if len(a.Values) != 1 {
		r.addError("%s: want one value", key)
		return fallback
	}
	return a.Values[0]
}

func (r *argReader) intArg(key string, fallback int) int {
	text := r.textArg(key, "")
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		r.addError("%s=%s: want a number", key, text)
	}
	return n
}

func (r *argReader) durationArg(key string, fallback time.Duration) time.Duration {
	text := r.textArg(key, "")
	if text == "" {
		return fallback
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		r.addError("%s=%s: want a duration such as 30s", key, text)
	}
	return d
}

// wordArgs returns the remaining arguments without values.
func (r *argReader) wordArgs() []string {
	var words []string
	r.argsLeft = slices.DeleteFunc(r.argsLeft, func(a Arg) bool {
		if len(a.Values) > 0 {
			return false
		}
		words = append(words, a.Key)
		return true
	})
	return words
}

// wordArg returns the single argument without a value.
func (r *argReader) wordArg(expected string) string {
	words := r.wordArgs()
	if len(words) != 1 {
		r.addError("want one %s", expected)
		return ""
	}
	return words[0]
}

func (r *argReader) addError(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf(format, args...))
}

// joinErrors returns the argument errors. A verb checks it before acting.
func (r *argReader) joinErrors() error {
	for _, a := range r.argsLeft {
		r.addError("%s takes no argument %q", r.step.Verb, a.Key)
	}
	r.argsLeft = nil
	return errors.Join(r.errs...)
}
