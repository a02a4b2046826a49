// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"weir.dev/weir/internal/lb/behavior"
)

// OverlapAnswers returns the behaviors for overlapping writes; Mixed alternates between some of them.
func OverlapAnswers() []behavior.Result {
	return []behavior.Result{behavior.Supersede, behavior.SupersedeDiscard, behavior.SupersedeDiscardLate, behavior.Lock, behavior.Conflict}
}

// Behavior returns the current behavior.
func (e *Emulator) Behavior() behavior.Behavior {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.opts.Behavior
}

// SetBehavior changes the behavior for future requests; unset answers keep their value.
func (e *Emulator) SetBehavior(b behavior.Behavior) error {
	for i, q := range behavior.AllProperties() {
		if _, err := b.WithResult(q.Name, b.GetResult(i)); err != nil {
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.opts.Behavior = b.WithDefaults(e.opts.Behavior)
	return nil
}

// ParseBehavior reads the key behaviour of a JSON object, e.g. a probe report.
func ParseBehavior(text []byte) (behavior.Behavior, error) {
	var report struct {
		Behaviour *behavior.Behavior `json:"behaviour"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return behavior.Behavior{}, fmt.Errorf(`want a JSON object with the key "behaviour": %w`, err)
	}
	if report.Behaviour == nil {
		return behavior.Behavior{}, errors.New(`want a JSON object with the key "behaviour", which is missing`)
	}
	return *report.Behaviour, nil
}

// inlineAddresses merges the stored addresses (had) with those in a load balancer's PUT (sent).
func inlineAddresses(b behavior.Behavior, isNew bool, before, sent []fields) []fields {
	addressesIgnored, statesIgnored := b.UpdateAddresses == behavior.Ignored, b.UpdateAdminStates == behavior.Ignored
	switch {
	case isNew && b.UpdateNewPools == behavior.Empty:
		return nil
	case isNew:
		return sent
	case addressesIgnored && statesIgnored:
		return before
	case addressesIgnored:
		return withAdminStates(before, sent)
	case statesIgnored:
		return withAdminStates(sent, before)
	}
	return sent
}

func withAdminStates(list, other []fields) []fields {
	states := map[string]fields{}
	for _, a := range other {
		states[addressTarget(a)] = propertyFields(a)
	}
	out := make([]fields, len(list))
	for i, a := range list {
		out[i] = a
		from, known := states[addressTarget(a)]
		if !known {
			continue
		}
		props := withoutFields(propertyFields(a), adminState)
		if state, ok := from[adminState]; ok {
			props[adminState] = state
		}
		out[i] = withField(a, "properties", props)
	}
	return out
}

func addressTarget(a fields) string {
	props := propertyFields(a)
	for _, to := range []string{stringField(props, "ipAddress"), nicIPConfigID(a), referenceID(props, "loadBalancerFrontendIPConfiguration")} {
		if to != "" {
			return to
		}
	}
	return "name " + stringField(a, "name")
}

func (e *Emulator) overlapPolicy() behavior.Result {
	policy := e.opts.Behavior.Overlap
	if policy == behavior.Mixed {
		policy = [...]behavior.Result{behavior.Supersede, behavior.Lock, behavior.Conflict}[e.random.IntN(3)]
	}
	return policy
}

func (e *Emulator) effectivePreconditions(x *exchange) (match, noneMatch string) {
	match, noneMatch = x.req.Header.Get("If-Match"), x.req.Header.Get("If-None-Match")
	if x.route.kind != KindPut || x.route.id.root != loadBalancerKind {
		return match, noneMatch
	}
	if x.route.id.child == poolKind && e.opts.Behavior.PoolIfMatch == behavior.Ignored {
		match = ""
	}
	if e.opts.Behavior.IfNoneMatch == behavior.Ignored {
		noneMatch = ""
	}
	return match, noneMatch
}

// QuestionsMarkdown renders the open questions for the documentation.
func QuestionsMarkdown() string {
	var b strings.Builder
	b.WriteString("| Question | Answers, the assumed one first | Because of |\n|---|---|---|\n")
	for _, q := range behavior.AllProperties() {
		answers := make([]string, len(q.Results))
		for i, a := range q.Results {
			answers[i] = "`" + string(a) + "`"
		}
		fmt.Fprintf(&b, "| `%s`: %s | %s | %s |\n", q.Name, q.Description, strings.Join(answers, ", "), q.Source)
	}
	return b.String()
}
