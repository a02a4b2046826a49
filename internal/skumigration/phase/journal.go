// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
)

// Journal is written before any change; entries are never removed.
type Journal struct {
	LoadBalancers []LoadBalancer `json:"loadBalancers"`
	// TrafficStopped is true once a machine has left its pools, or later: Services are unreachable.
	TrafficStopped bool `json:"trafficStopped,omitempty"`
	// Members records the pools of machines before the first one leaves.
	Members *Members `json:"members,omitempty"`
	// FinalReason is why the migration can't be undone, or "". It is set before the first irreversible
	// request.
	FinalReason string `json:"finalReason,omitempty"`
	// CompletedUndo is the request of a completed undo.
	CompletedUndo *UserRequest `json:"completedUndo,omitempty"`
	// StopSeenAt is the time of the last stop that took effect.
	StopSeenAt time.Time `json:"stopSeenAt,omitzero"`
	// Done is true once each address was verified or is a claim.
	Done bool `json:"done,omitempty"`
	// Claims are the claims of earlier migrations, see Address.IsClaim.
	Claims []LoadBalancer `json:"claims,omitempty"`
}

// LoadBalancer is a load balancer to migrate.
type LoadBalancer struct {
	ID        lb.LoadBalancerID `json:"id"`
	Location  string            `json:"location"`
	Tags      map[string]string `json:"tags,omitempty"`
	Addresses []Address         `json:"addresses"`
	// OneAtATime is true if Azure rejected one of several addresses without naming it.
	OneAtATime bool `json:"oneAtATime,omitempty"`
}

// Address is an address and its frontend.
type Address struct {
	Frontend string    `json:"frontend"`
	Family   lb.Family `json:"family"`
	// IP is zero for a public IP without an address.
	IP netip.Addr `json:"ip"`
	// PublicIP and Subnet are ARM ids; exactly one is set.
	PublicIP string `json:"publicIP,omitempty"`
	Subnet   string `json:"subnet,omitempty"`
	// Zones are the zones that the Service of a private frontend names.
	Zones []string `json:"zones,omitempty"`
	// StatusOnly is true if only a Service's status shows the address.
	StatusOnly bool `json:"statusOnly,omitempty"`
	// RejectReason is the last rejection. Rejected addresses are retried after the others.
	RejectReason  string    `json:"rejectReason,omitempty"`
	RejectCount   int       `json:"rejectCount,omitempty"`
	RejectedSince time.Time `json:"rejectedSince,omitzero"`
	// HolderDeleting is true if a load balancer of the migration holds the address, which may still be
	// deleting. Such addresses become free together.
	HolderDeleting bool `json:"holderDeleting,omitempty"`
	// IsClaim is true if waiting won't help: another resource holds the address, or no subnet contains
	// it. The migration completes without it. The Service keeps its claim: it gets no other address
	// until a user gives this one up.
	IsClaim bool `json:"claim,omitempty"`
}

// ErrInvalidJournal is returned for an invalid journal.
var ErrInvalidJournal = errors.New("the journal of the migration cannot be read")

// ParseJournal accepts "" as an empty journal.
func ParseJournal(text string) (Journal, error) {
	var j Journal
	if text == "" {
		return j, nil
	}
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return Journal{}, fmt.Errorf("%w: %w", ErrInvalidJournal, err)
	}
	for _, b := range j.LoadBalancers {
		if err := b.ID.Validate(); err != nil { // used in request URLs
			return Journal{}, fmt.Errorf("%w: %w", ErrInvalidJournal, err)
		}
		for _, a := range b.Addresses {
			if err := a.validate(); err != nil {
				return Journal{}, fmt.Errorf("%w: frontend %q: %w", ErrInvalidJournal, a.Frontend, err)
			}
		}
	}
	if err := j.Members.validate(j.LoadBalancers); err != nil {
		return Journal{}, fmt.Errorf("%w: members: %w", ErrInvalidJournal, err)
	}
	return j, nil
}

func (a Address) validate() error {
	switch {
	case a.Frontend == "" || !a.IP.IsValid() && a.PublicIP == "":
		return errors.New("it has no name, or no address")
	case (a.PublicIP == "") == (a.Subnet == ""):
		return errors.New("it has a public IP and a subnet, or neither")
	case a.PublicIP == "":
		return nil
	}
	_, err := lb.ParseResourceID(a.PublicIP, lb.TypePublicIP)
	return err
}

// FormatJournal returns the stored form.
func FormatJournal(j Journal) string {
	text, err := json.Marshal(j)
	if err != nil {
		panic(err) // plain types
	}
	return string(text)
}

// String implements fmt.Stringer.
func (a Address) String() string {
	if a.PublicIP != "" {
		return fmt.Sprintf("%s (public IP %s, frontend %s)", a.IP, a.PublicIP[strings.LastIndexByte(a.PublicIP, '/')+1:], a.Frontend)
	}
	return fmt.Sprintf("%s (private, frontend %s)", a.IP, a.Frontend)
}

// publicIPIDs returns lower-case ids.
func (j Journal) publicIPIDs() map[string]bool {
	ipids := map[string]bool{}
	for _, b := range j.LoadBalancers {
		for _, a := range b.Addresses {
			if a.PublicIP != "" {
				ipids[strings.ToLower(a.PublicIP)] = true
			}
		}
	}
	return ipids
}

func (j Journal) clone() Journal {
	j.LoadBalancers = slices.Clone(j.LoadBalancers)
	for at := range j.LoadBalancers {
		j.LoadBalancers[at].Addresses = slices.Clone(j.LoadBalancers[at].Addresses)
	}
	return j
}

// IsOpen reports whether a migration has started and is neither complete nor undone.
func (j Journal) IsOpen() bool { return len(j.LoadBalancers) > 0 && !j.Done && j.CompletedUndo == nil }

// HasDeletedLoadBalancer reports whether a Basic load balancer was deleted or replaced, so that anyone can get its
// private addresses.
func (j Journal) HasDeletedLoadBalancer(snapshot Snapshot) bool {
	return j.IsOpen() && slices.ContainsFunc(j.LoadBalancers, func(b LoadBalancer) bool {
		balancer, exists := snapshot.findLoadBalancer(b.ID)
		statusOnly := len(b.Addresses) > 0 && !slices.ContainsFunc(b.Addresses, func(a Address) bool { return !a.StatusOnly })
		return !statusOnly && (!exists || balancer.SKU != lb.Basic)
	})
}
