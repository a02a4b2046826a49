// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// faultScript: every matching rule counts the request; the first one that is due applies.
type faultScript struct {
	text      string
	rules     []*faultRule
	startedAt time.Time
}

type faultRule struct {
	Name   string
	Match  faultMatch
	Action faultAction

	glob        *regexp.Regexp
	random      *rand.Rand
	seen, fired int
}

type faultMatch struct {
	Method      string   `json:"method"`
	Path        string   `json:"path"`
	Kind        Kind     `json:"kind"`
	UserAgent   string   `json:"userAgent"`
	Nth         int      `json:"nth"`
	Every       int      `json:"every"`
	Probability *float64 `json:"probability"`
	After       duration `json:"after"`
	Until       duration `json:"until"`
	MaxMatches  int      `json:"maxMatches"`
}

type faultAction struct {
	Delay        duration          `json:"delay"`
	Status       int               `json:"status"`
	Code         string            `json:"code"`
	Message      string            `json:"message"`
	Details      []Detail          `json:"details"`
	Headers      map[string]string `json:"headers"`
	Body         *string           `json:"body"`
	Drop         bool              `json:"drop"`
	Applied      bool              `json:"applied"`
	TruncateBody *int              `json:"truncateBody"`
	BumpEtag     bool              `json:"bumpEtag"`
	Operation    *operationFault   `json:"operation"`
	Polls        *pollFault        `json:"polls"`
}

type operationFault struct {
	Stuck bool         `json:"stuck"`
	Fail  *failureSpec `json:"fail"`
}

type failureSpec struct {
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Details []Detail `json:"details"`
}

type pollFault struct {
	Status     int      `json:"status"`
	Times      int      `json:"times"`
	Code       string   `json:"code"`
	Message    string   `json:"message"`
	RetryAfter duration `json:"retryAfter"`
}

// duration uses Go's syntax: 250ms, 2s, 5m.
type duration time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (d *duration) UnmarshalJSON(raw []byte) error {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("%s is no duration: write one like 250ms, 2s or 5m", raw)
	}
	v, err := time.ParseDuration(s)
	if err != nil || v < 0 {
		return fmt.Errorf("%q is no duration of zero or more: write one like 250ms, 2s or 5m", s)
	}
	*d = duration(v)
	return nil
}

func parseFaults(raw []byte) (*faultScript, error) {
	script := &faultScript{text: string(raw)}
	if len(bytes.TrimSpace(raw)) == 0 {
		script.text = ""
		return script, nil
	}
	asJSON, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return nil, fmt.Errorf("fault script: not YAML: %w", err)
	}
	var top struct {
		Rules []json.RawMessage `json:"rules"`
	}
	if err := decodeStrict(asJSON, &top); err != nil {
		return nil, fmt.Errorf("fault script: %w", err)
	}
	for i, r := range top.Rules {
		rule, err := parseRule(r)
		if err != nil {
			return nil, fmt.Errorf("fault script: rules[%d]%w", i, err)
		}
		if rule.Name == "" {
			rule.Name = fmt.Sprintf("rules[%d]", i)
		}
		script.rules = append(script.rules, rule)
	}
	return script, nil
}

func parseRule(raw json.RawMessage) (*faultRule, error) {
	var parts struct {
		Name   string          `json:"name"`
		Match  json.RawMessage `json:"match"`
		Action json.RawMessage `json:"action"`
	}
	if err := decodeStrict(raw, &parts); err != nil {
		return nil, fmt.Errorf(": %w", err)
	}
	rule := &faultRule{Name: parts.Name}
	if len(parts.Match) > 0 {
		if err := decodeStrict(parts.Match, &rule.Match); err != nil {
			return nil, fmt.Errorf(".match: %w", err)
		}
	}
	if len(parts.Action) == 0 {
		return nil, errors.New(".action: missing: say what the rule does")
	}
	if err := decodeStrict(parts.Action, &rule.Action); err != nil {
		return nil, fmt.Errorf(".action: %w", err)
	}
	if err := rule.Match.validateMatch(); err != nil {
		return nil, fmt.Errorf(".match.%w", err)
	}
	if err := rule.Action.validateAction(); err != nil {
		return nil, fmt.Errorf(".action.%w", err)
	}
	glob, err := compileGlob(rule.Match.Path)
	if err != nil {
		return nil, fmt.Errorf(".match.path: %w", err)
	}
	rule.glob = glob
	return rule, nil
}

// decodeStrict lists the allowed fields on an unknown one.
func decodeStrict(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		where := "it"
		if wrong.Field != "" {
			where = wrong.Field
		}
		return fmt.Errorf("%s must be %s, not %s", where, typeName(wrong.Type), wrong.Value)
	}
	message := strings.TrimPrefix(err.Error(), "json: ")
	if strings.HasPrefix(message, "unknown field") {
		return fmt.Errorf("%s; allowed here: %s", message, strings.Join(fieldNames(reflect.TypeOf(into).Elem(), ""), ", "))
	}
	return errors.New(message)
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "a mapping"
	case reflect.Slice:
		return "a list"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Pointer:
		return typeName(t.Elem())
	default:
		return "text"
	}
}

func fieldNames(t reflect.Type, prefix string) []string {
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		name := prefix + tag
		names = append(names, name)
		if f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct {
			names = append(names, fieldNames(f.Type.Elem(), name+".")...)
		}
	}
	return names
}

// compileGlob: * matches within one segment, ** across segments. A pattern without leading slash
// may match from any segment. Case-insensitive.
func compileGlob(pattern string) (*regexp.Regexp, error) {
	if pattern == "" {
		return nil, nil //nolint:nilnil // no pattern, no restriction
	}
	var expr strings.Builder
	expr.WriteString("(?is)^")
	if !strings.HasPrefix(pattern, "/") {
		expr.WriteString("(?:.*/)?")
	}
	for i := 0; i < len(pattern); i++ {
		switch {
		case strings.HasPrefix(pattern[i:], "**"):
			expr.WriteString(".*")
			i++
		case pattern[i] == '*':
			expr.WriteString("[^/]*")
		default:
			expr.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	expr.WriteString("$")
	re, err := regexp.Compile(expr.String())
	if err != nil {
		return nil, fmt.Errorf("%q is no pattern: %w", pattern, err)
	}
	return re, nil
}
