// SPDX-License-Identifier: Apache-2.0

// Package behaviour lists undocumented behaviors of Azure with their possible and assumed answers.
// The emulator implements them, the probe measures them, the controller adapts.
package behaviour

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// Answer is one observed behavior; empty means unknown.
type Answer string

// Possible answers.
const (
	Taken            Answer = "taken"
	Ignored          Answer = "ignored"
	Filled           Answer = "filled"
	Empty            Answer = "empty"
	Kept             Answer = "kept"
	Renewed          Answer = "renewed"
	Honoured         Answer = "honoured"
	Refused          Answer = "refused"
	Supersede        Answer = "supersede"         // the superseded content persists
	SupersedeDiscard Answer = "supersede-discard" // the superseded content is rolled back
	// SupersedeDiscardLate rolls back when the superseded operation ends, possibly after the later
	// one.
	SupersedeDiscardLate Answer = "supersede-discard-late"
	Lock                 Answer = "lock-429"
	Conflict             Answer = "conflict-409"
	Mixed                Answer = "mixed" // one of supersede, lock and conflict, per request
)

// Behaviour is the observed behavior of one Azure. The zero value is unknown.
type Behaviour struct {
	// WholeWriteAddresses is the effect of a load balancer PUT on the addresses of a pool.
	WholeWriteAddresses Answer `json:"wholeWriteAddresses,omitempty"`
	// WholeWriteAdminStates is the same for admin states.
	WholeWriteAdminStates Answer `json:"wholeWriteAdminStates,omitempty"`
	// WholeWriteNewPools is the same for addresses of a new pool.
	WholeWriteNewPools Answer `json:"wholeWriteNewPools,omitempty"`
	// UnchangedWriteEtag is the effect of a PUT without changes on the etag.
	UnchangedWriteEtag Answer `json:"unchangedWriteEtag,omitempty"`
	// Overlap is the result of a write during another one of the same load balancer.
	Overlap     Answer `json:"overlap,omitempty"`
	PoolIfMatch Answer `json:"poolIfMatch,omitempty"`
	IfNoneMatch Answer `json:"ifNoneMatch,omitempty"`
	// InterfaceAdminState is the effect of Down on a network interface's entry.
	InterfaceAdminState Answer `json:"interfaceAdminState,omitempty"`
	// FailedParent is the result of a pool PUT on a Failed load balancer.
	FailedParent Answer `json:"failedParent,omitempty"`
}

// Question is one row of the table.
type Question struct {
	Name string
	Asks string
	// Answers has the assumed one first.
	Answers  []Answer
	Evidence string
}

// Questions returns the table, in the order of the fields of [Behaviour].
func Questions() []Question {
	return []Question{
		{"wholeWriteAddresses", "a PUT of a load balancer with other addresses for a pool that is there", []Answer{Ignored, Taken}, "Azure/azure-rest-api-specs#11234"},
		{"wholeWriteAdminStates", "a PUT of a load balancer with other admin states of addresses that are there", []Answer{Ignored, Taken}, "Azure/azure-rest-api-specs#11234, by analogy"},
		{"wholeWriteNewPools", "the addresses of a pool that a PUT of its load balancer makes", []Answer{Empty, Filled}, "Azure/bicep#11905, Azure/azure-service-operator#4368"},
		{"unchangedWriteEtag", "the etag after a PUT that changes nothing", []Answer{Kept, Renewed}, "virtual networks keep theirs, subnets do not; load balancers are recorded nowhere"},
		{"overlap", "a write while another runs on the same load balancer", []Answer{Supersede, SupersedeDiscard, Lock, Conflict, Mixed, SupersedeDiscardLate}, "recorded for load balancers: supersede alone"},
		{"poolIfMatch", "If-Match on a PUT of a pool", []Answer{Honoured, Ignored}, "kubernetes-sigs/cloud-provider-azure#1588"},
		{"ifNoneMatch", "If-None-Match: * on a PUT of a pool or load balancer that is there", []Answer{Honoured, Ignored}, "recorded nowhere"},
		{"interfaceAdminState", "Down on a network interface's entry in a PUT of its pool", []Answer{Taken, Ignored, Refused}, "the admin state page; no recording"},
		{"failedParent", "a PUT of a pool whose load balancer is Failed", []Answer{Taken, Refused}, "ParentResourceIsInFailedState is seen for express route circuits alone"},
	}
}

// Assumed returns the assumed answers.
func Assumed() Behaviour {
	var b Behaviour
	for i, q := range Questions() {
		b.set(i, q.Answers[0])
	}
	return b
}

// Or returns b with unknown answers taken from other.
func (b Behaviour) Or(other Behaviour) Behaviour {
	for i := range Questions() {
		if b.Get(i) == "" {
			b.set(i, other.Get(i))
		}
	}
	return b
}

// Get returns the answer to question i of [Questions].
func (b Behaviour) Get(i int) Answer {
	return reflect.ValueOf(b).Field(i).Interface().(Answer) //nolint:forcetypeassert // a test walks all fields
}

func (b *Behaviour) set(i int, a Answer) { reflect.ValueOf(b).Elem().Field(i).Set(reflect.ValueOf(a)) }

// With returns b with another answer to the question named name.
func (b Behaviour) With(name string, a Answer) (Behaviour, error) {
	all := Questions()
	i := slices.IndexFunc(all, func(q Question) bool { return q.Name == name })
	if i < 0 {
		return b, fmt.Errorf("no question of Azure's behaviour is named %q: use one of %s", name, names(all))
	}
	if a != "" && !slices.Contains(all[i].Answers, a) {
		return b, fmt.Errorf("%s: %q is no answer: use one of %v", name, a, all[i].Answers)
	}
	b.set(i, a)
	return b, nil
}

func names(all []Question) string {
	list := make([]string, len(all))
	for i, q := range all {
		list[i] = q.Name
	}
	return strings.Join(list, ", ")
}

// String lists the differences from [Assumed], in the order of [Questions].
func (b Behaviour) String() string {
	var parts []string
	for i, q := range Questions() {
		if a := b.Get(i); a != "" && a != q.Answers[0] {
			parts = append(parts, q.Name+"="+string(a))
		}
	}
	if len(parts) == 0 {
		return "as assumed"
	}
	return strings.Join(parts, " ")
}

// UnmarshalJSON rejects unknown questions and answers.
func (b *Behaviour) UnmarshalJSON(text []byte) error {
	var raw map[string]Answer
	dec := json.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&raw); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more follows after the object")
	}
	var next Behaviour
	for name, a := range raw {
		var err error
		if next, err = next.With(name, a); err != nil {
			return err
		}
	}
	*b = next
	return nil
}
