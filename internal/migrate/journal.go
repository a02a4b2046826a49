// SPDX-License-Identifier: Apache-2.0

package migrate

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
	Balancers []Balancer `json:"loadBalancers"`
	// Apart is true once a machine has left its pools, or later: Services are unreachable.
	Apart bool `json:"apart,omitempty"`
	// Members records the pools of machines before the first one leaves.
	Members *Members `json:"members,omitempty"`
	// Final is why the migration can't be undone, or "". It is set before the first irreversible
	// request.
	Final string `json:"final,omitempty"`
	// Undone is the request of a completed undo.
	Undone *Wish `json:"undone,omitempty"`
	// Heard is the time of the last stop that took effect.
	Heard time.Time `json:"heard,omitzero"`
	// Done is true once each address was verified or is a claim.
	Done bool `json:"done,omitempty"`
	// Owed are the claims of earlier migrations, see Address.IsClaim.
	Owed []Balancer `json:"owed,omitempty"`
}

// Balancer is a load balancer to migrate.
type Balancer struct {
	ID        lb.LoadBalancerID `json:"id"`
	Location  string            `json:"location"`
	Tags      map[string]string `json:"tags,omitempty"`
	Addresses []Address         `json:"addresses"`
	// OneByOne is true if Azure rejected one of several addresses without naming it.
	OneByOne bool `json:"oneByOne,omitempty"`
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
	// Told is true if only a Service's status shows the address.
	Told bool `json:"told,omitempty"`
	// Refused is the last rejection. Rejected addresses are retried after the others.
	Refused string    `json:"refused,omitempty"`
	Times   int       `json:"refusals,omitempty"`
	Since   time.Time `json:"refusedSince,omitzero"`
	// Held is true if a load balancer of the migration holds the address, which may still be
	// deleting. Such addresses become free together.
	Held bool `json:"held,omitempty"`
	// Owed is true if waiting won't help: another resource holds the address, or no subnet contains
	// it. The migration completes without it. The Service keeps its claim: it gets no other address
	// until a user gives this one up.
	Owed bool `json:"owed,omitempty"`
}

// ErrUnreadable is returned for an invalid journal.
var ErrUnreadable = errors.New("the journal of the migration cannot be read")

// Parse accepts "" as an empty journal.
func Parse(text string) (Journal, error) {
	var j Journal
	if text == "" {
		return j, nil
	}
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return Journal{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	for _, b := range j.Balancers {
		if err := b.ID.Validate(); err != nil { // used in request URLs
			return Journal{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
		for _, a := range b.Addresses {
			if err := a.validate(); err != nil {
				return Journal{}, fmt.Errorf("%w: frontend %q: %w", ErrUnreadable, a.Frontend, err)
			}
		}
	}
	if err := j.Members.validate(j.Balancers); err != nil {
		return Journal{}, fmt.Errorf("%w: members: %w", ErrUnreadable, err)
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

// Format returns the stored form.
func Format(j Journal) string {
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

// publicIPs returns lower-case ids.
func (j Journal) publicIPs() map[string]bool {
	all := map[string]bool{}
	for _, b := range j.Balancers {
		for _, a := range b.Addresses {
			if a.PublicIP != "" {
				all[strings.ToLower(a.PublicIP)] = true
			}
		}
	}
	return all
}

func (j Journal) clone() Journal {
	j.Balancers = slices.Clone(j.Balancers)
	for at := range j.Balancers {
		j.Balancers[at].Addresses = slices.Clone(j.Balancers[at].Addresses)
	}
	return j
}

// Open reports whether a migration has started and is neither complete nor undone.
func (j Journal) Open() bool { return len(j.Balancers) > 0 && !j.Done && j.Undone == nil }

// Gone reports whether a Basic load balancer was deleted or replaced, so that anyone can get its
// private addresses.
func (j Journal) Gone(snapshot Seen) bool {
	return j.Open() && slices.ContainsFunc(j.Balancers, func(b Balancer) bool {
		has, exists := snapshot.balancer(b.ID)
		statusOnly := len(b.Addresses) > 0 && !slices.ContainsFunc(b.Addresses, func(a Address) bool { return !a.Told })
		return !statusOnly && (!exists || has.SKU != lb.Basic)
	})
}
