// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"weir.dev/weir/internal/behaviour"
)

// Overlaps returns the behaviors for overlapping writes in documentation order; Mixed alternates
// between some of them.
func Overlaps() []behaviour.Answer {
	return []behaviour.Answer{behaviour.Supersede, behaviour.SupersedeDiscard, behaviour.SupersedeDiscardLate, behaviour.Lock, behaviour.Conflict}
}

// Behaviour returns the current behavior with every question answered.
func (e *Emulator) Behaviour() behaviour.Behaviour {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.opts.Behaviour
}

// SetBehaviour changes the behavior for future requests; unset answers keep their value.
func (e *Emulator) SetBehaviour(b behaviour.Behaviour) error {
	for i, q := range behaviour.Questions() {
		if _, err := b.With(q.Name, b.Get(i)); err != nil {
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.opts.Behaviour = b.Or(e.opts.Behaviour)
	return nil
}

// ParseBehaviour reads the key behaviour of a JSON object, such as a probe report, and ignores
// other keys.
func ParseBehaviour(text []byte) (behaviour.Behaviour, error) {
	var report struct {
		Behaviour *behaviour.Behaviour `json:"behaviour"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return behaviour.Behaviour{}, fmt.Errorf(`want a JSON object with the key "behaviour": %w`, err)
	}
	if report.Behaviour == nil {
		return behaviour.Behaviour{}, errors.New(`want a JSON object with the key "behaviour", which is missing`)
	}
	return *report.Behaviour, nil
}

// inlineEntries returns the addresses of a pool after a PUT of its load balancer, from the stored
// addresses (had) and those in the body (sent).
func inlineEntries(b behaviour.Behaviour, isNew bool, had, sent []fields) []fields {
	addressesIgnored, statesIgnored := b.WholeWriteAddresses == behaviour.Ignored, b.WholeWriteAdminStates == behaviour.Ignored
	switch {
	case isNew && b.WholeWriteNewPools == behaviour.Empty:
		return nil
	case isNew:
		return sent
	case addressesIgnored && statesIgnored:
		return had
	case addressesIgnored:
		return withStatesOf(had, sent)
	case statesIgnored:
		return withStatesOf(sent, had)
	}
	return sent
}

// withStatesOf returns the addresses with the admin states that other has for them.
func withStatesOf(list, other []fields) []fields {
	states := map[string]fields{}
	for _, a := range other {
		states[target(a)] = properties(a)
	}
	out := make([]fields, len(list))
	for i, a := range list {
		out[i] = a
		from, known := states[target(a)]
		if !known {
			continue
		}
		props := without(properties(a), adminState)
		if state, ok := from[adminState]; ok {
			props[adminState] = state
		}
		out[i] = with(a, "properties", props)
	}
	return out
}

// target identifies an address by its IP address, its IP configuration, or its name.
func target(a fields) string {
	props := properties(a)
	for _, to := range []string{text(props, "ipAddress"), nicOf(a), reference(props, "loadBalancerFrontendIPConfiguration")} {
		if to != "" {
			return to
		}
	}
	return "name " + text(a, "name")
}

// overlapNow returns the overlap policy for this request. Mixed picks one of the three that differ
// on the wire.
func (e *Emulator) overlapNow() behaviour.Answer {
	policy := e.opts.Behaviour.Overlap
	if policy == behaviour.Mixed {
		policy = [...]behaviour.Answer{behaviour.Supersede, behaviour.Lock, behaviour.Conflict}[e.random.IntN(3)]
	}
	return policy
}

// heeded returns the If-Match and If-None-Match values that apply to a write.
func (e *Emulator) heeded(x *exchange) (match, noneMatch string) {
	match, noneMatch = x.req.Header.Get("If-Match"), x.req.Header.Get("If-None-Match")
	if x.route.kind != KindPut || x.route.id.root != loadBalancerKind {
		return match, noneMatch
	}
	if x.route.id.child == poolKind && e.opts.Behaviour.PoolIfMatch == behaviour.Ignored {
		match = ""
	}
	if e.opts.Behaviour.IfNoneMatch == behaviour.Ignored {
		noneMatch = ""
	}
	return match, noneMatch
}

// QuestionsMarkdown renders the open questions about Azure for the reference documentation.
func QuestionsMarkdown() string {
	var b strings.Builder
	b.WriteString("| Question | Answers, the assumed one first | Because of |\n|---|---|---|\n")
	for _, q := range behaviour.Questions() {
		answers := make([]string, len(q.Answers))
		for i, a := range q.Answers {
			answers[i] = "`" + string(a) + "`"
		}
		fmt.Fprintf(&b, "| `%s`: %s | %s | %s |\n", q.Name, q.Asks, strings.Join(answers, ", "), q.Evidence)
	}
	return b.String()
}
