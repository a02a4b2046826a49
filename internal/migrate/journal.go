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

// Journal records what a migration must complete. It is written before any change, and entries are
// never removed.
type Journal struct {
	Balancers []Balancer `json:"loadBalancers"`
	// Apart is true once a machine has left its pools, or a later step started: Services are
	// unreachable.
	Apart bool `json:"apart,omitempty"`
	// Members records the pools of machines, from before the first one leaves.
	Members *Members `json:"members,omitempty"`
	// Final is why the migration can't be undone; empty while it can. It is set before the first
	// irreversible request is sent.
	Final string `json:"final,omitempty"`
	// Undone is the undo request, once the undo is complete.
	Undone *Wish `json:"undone,omitempty"`
	// Heard is the time of the last stop request that took effect.
	Heard time.Time `json:"heard,omitzero"`
	// Done is true once each address was verified or is a claim.
	Done bool `json:"done,omitempty"`
	// Owed are the claims left by earlier migrations, see Address.IsClaim.
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
	// PublicIP is an ARM id, Subnet the one of a private address. Exactly one is set.
	PublicIP string `json:"publicIP,omitempty"`
	Subnet   string `json:"subnet,omitempty"`
	// Told is true if only a Service's status shows the address, because the load balancer no
	// longer existed.
	Told bool `json:"told,omitempty"`
	// Refused is Azure's last rejection of the address, RejectCount the number of rejections and
	// RejectedSince the time of the first. A rejected address is retried after the others.
	Refused string    `json:"refused,omitempty"`
	Times   int       `json:"refusals,omitempty"`
	Since   time.Time `json:"refusedSince,omitzero"`
	// Held is true if the address is held by a load balancer of the migration, which may still be
	// deleting. All such addresses become free together and are requested together.
	Held bool `json:"held,omitempty"`
	// Owed is true if waiting won't help: another resource holds the address, or no subnet contains
	// it. The migration completes without it. The Service keeps its claim: it gets no other address
	// until a user gives this one up.
	Owed bool `json:"owed,omitempty"`
}

// ErrUnreadable is returned for a journal that can't be parsed.
var ErrUnreadable = errors.New("the journal of the migration cannot be read")

// Parse parses the output of [Format]. Empty text is an empty journal.
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

// Format returns the stored form of a journal.
func Format(j Journal) string {
	text, err := json.Marshal(j)
	if err != nil {
		panic(err) // plain types
	}
	return string(text)
}

// String describes the address for humans.
func (a Address) String() string {
	if a.PublicIP != "" {
		return fmt.Sprintf("%s (public IP %s, frontend %s)", a.IP, a.PublicIP[strings.LastIndexByte(a.PublicIP, '/')+1:], a.Frontend)
	}
	return fmt.Sprintf("%s (private, frontend %s)", a.IP, a.Frontend)
}

// publicIPs returns the ids of the journal's public IPs, in lower case.
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

// clone returns a copy that may be changed.
func (j Journal) clone() Journal {
	j.Balancers = slices.Clone(j.Balancers)
	for at := range j.Balancers {
		j.Balancers[at].Addresses = slices.Clone(j.Balancers[at].Addresses)
	}
	return j
}

// Open reports whether a migration has started and is neither complete nor undone.
func (j Journal) Open() bool { return len(j.Balancers) > 0 && !j.Done && j.Undone == nil }

// Gone reports whether a Basic load balancer was deleted or replaced, so that its private addresses
// are up for grabs.
func (j Journal) Gone(snapshot Seen) bool {
	return j.Open() && slices.ContainsFunc(j.Balancers, func(b Balancer) bool {
		has, exists := snapshot.balancer(b.ID)
		statusOnly := len(b.Addresses) > 0 && !slices.ContainsFunc(b.Addresses, func(a Address) bool { return !a.Told })
		return !statusOnly && (!exists || has.SKU != lb.Basic)
	})
}
