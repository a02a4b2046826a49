// SPDX-License-Identifier: Apache-2.0

// Package behavior lists undocumented behaviors of Azure with their possible and assumed answers.
// The emulator implements them, the probe measures them, the controller adapts.
package behavior

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

// Result is one observed behavior; empty means unknown.
type Result string

// Possible answers.
const (
	Accepted         Result = "taken"
	Ignored          Result = "ignored"
	Populated        Result = "filled"
	Empty            Result = "empty"
	Unchanged        Result = "kept"
	Changed          Result = "renewed"
	Enforced         Result = "honoured"
	Rejected         Result = "refused"
	Supersede        Result = "supersede"         // the superseded content persists
	SupersedeDiscard Result = "supersede-discard" // the superseded content is rolled back
	// SupersedeDiscardLate rolls back when the superseded operation ends, possibly after the later
	// one.
	SupersedeDiscardLate Result = "supersede-discard-late"
	Lock                 Result = "lock-429"
	Conflict             Result = "conflict-409"
	Mixed                Result = "mixed" // one of supersede, lock and conflict, per request
)

// Behavior is the observed behavior of one Azure. The zero value is unknown.
type Behavior struct {
	// UpdateAddresses is the effect of a load balancer PUT on the addresses of a pool.
	UpdateAddresses Result `json:"wholeWriteAddresses,omitempty"`
	// UpdateAdminStates is the same for admin states.
	UpdateAdminStates Result `json:"wholeWriteAdminStates,omitempty"`
	// UpdateNewPools is the same for addresses of a new pool.
	UpdateNewPools Result `json:"wholeWriteNewPools,omitempty"`
	// NoChangeEtag is the effect of a PUT without changes on the etag.
	NoChangeEtag Result `json:"unchangedWriteEtag,omitempty"`
	// Overlap is the result of a write during another one of the same load balancer.
	Overlap     Result `json:"overlap,omitempty"`
	PoolIfMatch Result `json:"poolIfMatch,omitempty"`
	IfNoneMatch Result `json:"ifNoneMatch,omitempty"`
	// InterfaceAdminState is the effect of Down on a network interface's entry.
	InterfaceAdminState Result `json:"interfaceAdminState,omitempty"`
	// FailedParent is the result of a pool PUT on a Failed load balancer.
	FailedParent Result `json:"failedParent,omitempty"`
	// DNSLabelFamilies is the result of a public IP PUT with the DNS label of one of the other
	// family.
	DNSLabelFamilies Result `json:"dnsLabelBothFamilies,omitempty"`
}

// Property is one row of the table.
type Property struct {
	Name        string
	Description string
	// Results has the assumed one first.
	Results []Result
	Source  string
}

// AllProperties returns the table, in the order of the fields of [Behavior].
func AllProperties() []Property {
	return []Property{
		{"wholeWriteAddresses", "a PUT of a load balancer with other addresses for a pool that is there", []Result{Ignored, Accepted}, "Azure/azure-rest-api-specs#11234"},
		{"wholeWriteAdminStates", "a PUT of a load balancer with other admin states of addresses that are there", []Result{Ignored, Accepted}, "Azure/azure-rest-api-specs#11234, by analogy"},
		{"wholeWriteNewPools", "the addresses of a pool that a PUT of its load balancer makes", []Result{Empty, Populated}, "Azure/bicep#11905, Azure/azure-service-operator#4368"},
		{"unchangedWriteEtag", "the etag after a PUT that changes nothing", []Result{Unchanged, Changed}, "virtual networks keep theirs, subnets do not; load balancers are recorded nowhere"},
		{"overlap", "a write while another runs on the same load balancer", []Result{Supersede, SupersedeDiscard, Lock, Conflict, Mixed, SupersedeDiscardLate}, "recorded for load balancers: supersede alone"},
		{"poolIfMatch", "If-Match on a PUT of a pool", []Result{Enforced, Ignored}, "kubernetes-sigs/cloud-provider-azure#1588"},
		{"ifNoneMatch", "If-None-Match: * on a PUT of a pool or load balancer that is there", []Result{Enforced, Ignored}, "recorded nowhere"},
		{"interfaceAdminState", "Down on a network interface's entry in a PUT of its pool", []Result{Accepted, Ignored, Rejected}, "the admin state page; no recording"},
		{"failedParent", "a PUT of a pool whose load balancer is Failed", []Result{Accepted, Rejected}, "ParentResourceIsInFailedState is seen for express route circuits alone"},
		{"dnsLabelBothFamilies", "one DNS label on public IPs of both families", []Result{Rejected, Accepted}, "openshift/installer#10656; quickstarts give each family its own label"},
	}
}

// AssumedBehavior returns the assumed answers.
func AssumedBehavior() Behavior {
	var b Behavior
	for i, q := range AllProperties() {
		b.setResult(i, q.Results[0])
	}
	return b
}

// WithDefaults returns b with unknown answers taken from other.
func (b Behavior) WithDefaults(other Behavior) Behavior {
	for i := range AllProperties() {
		if b.GetResult(i) == "" {
			b.setResult(i, other.GetResult(i))
		}
	}
	return b
}

// GetResult returns the answer to question i of [AllProperties].
func (b Behavior) GetResult(i int) Result {
	return reflect.ValueOf(b).Field(i).Interface().(Result) //nolint:forcetypeassert // a test walks all fields
}

func (b *Behavior) setResult(i int, a Result) {
	reflect.ValueOf(b).Elem().Field(i).Set(reflect.ValueOf(a))
}

// WithResult returns b with another answer to the question named name.
func (b Behavior) WithResult(name string, a Result) (Behavior, error) {
	properties := AllProperties()
	i := slices.IndexFunc(properties, func(q Property) bool { return q.Name == name })
	if i < 0 {
		return b, fmt.Errorf("no question of Azure's behaviour is named %q: use one of %s", name, propertyNames(properties))
	}
	if a != "" && !slices.Contains(properties[i].Results, a) {
		return b, fmt.Errorf("%s: %q is invalid: use one of %v", name, a, properties[i].Results)
	}
	b.setResult(i, a)
	return b, nil
}

func propertyNames(properties []Property) string {
	list := make([]string, len(properties))
	for i, q := range properties {
		list[i] = q.Name
	}
	return strings.Join(list, ", ")
}

// String lists the differences from [AssumedBehavior], in the order of [AllProperties].
func (b Behavior) String() string {
	var parts []string
	for i, q := range AllProperties() {
		if a := b.GetResult(i); a != "" && a != q.Results[0] {
			parts = append(parts, q.Name+"="+string(a))
		}
	}
	if len(parts) == 0 {
		return "as assumed"
	}
	return strings.Join(parts, " ")
}

// UnmarshalJSON rejects unknown questions and answers.
func (b *Behavior) UnmarshalJSON(text []byte) error {
	var raw map[string]Result
	dec := json.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&raw); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more follows after the object")
	}
	var next Behavior
	for name, a := range raw {
		var err error
		if next, err = next.WithResult(name, a); err != nil {
			return err
		}
	}
	*b = next
	return nil
}
