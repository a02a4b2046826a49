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

// Journal is what a migration has to bring to its end. It is written down before anything is changed, and
// nothing is ever taken out of it.
type Journal struct {
	Balancers []Balancer `json:"loadBalancers"`
	// Apart is true once a machine has left, or anything after that: then Services are cut off.
	Apart bool `json:"apart,omitempty"`
	// Members are where machines were, once the first of them is about to leave.
	Members *Members `json:"members,omitempty"`
	// Final is why there is no way back; empty while there is one. It is there before the first request is sent of
	// which that is so.
	Final string `json:"final,omitempty"`
	// Undone is who had it taken back, once nothing of it is left.
	Undone *Wish `json:"undone,omitempty"`
	// Heard is when the last stop was asked for at which nothing more is written.
	Heard time.Time `json:"heard,omitzero"`
	// Done is true once each address was seen where it belongs, or is owed.
	Done bool `json:"done,omitempty"`
	// Owed are the addresses that earlier migrations owe to Services.
	Owed []Balancer `json:"owed,omitempty"`
}

// Balancer is a load balancer that is to be Standard.
type Balancer struct {
	ID        lb.LoadBalancerID `json:"id"`
	Location  string            `json:"location"`
	Tags      map[string]string `json:"tags,omitempty"`
	Addresses []Address         `json:"addresses"`
	// OneByOne is true if Azure has refused one of several addresses, and has not said which.
	OneByOne bool `json:"oneByOne,omitempty"`
}

// Address is an address, and the frontend that has it.
type Address struct {
	Frontend string    `json:"frontend"`
	Family   lb.Family `json:"family"`
	// IP is zero for a public IP that has none yet: then there is none to keep.
	IP netip.Addr `json:"ip"`
	// PublicIP is an ARM id, and Subnet that of a private address; one of both is empty.
	PublicIP string `json:"publicIP,omitempty"`
	Subnet   string `json:"subnet,omitempty"`
	// Told is true if a Service's status alone says so: the load balancer was gone before.
	Told bool `json:"told,omitempty"`
	// Refused is why Azure refuses it to the frontend, the last of so many times, the first at Since; empty if it
	// does not. The other addresses are made first, and then it is asked for again.
	Refused string    `json:"refused,omitempty"`
	Times   int       `json:"refusals,omitempty"`
	Since   time.Time `json:"refusedSince,omitzero"`
	// Held is true if Azure names a load balancer of the migration, which may be being deleted: all such addresses are free
	// at once, and are asked for together.
	Held bool `json:"held,omitempty"`
	// Owed is true if waiting does not help: another system has the address, or no subnet of ours. The migration ends
	// without it, and its Service gets no other address until a user gives it up.
	Owed bool `json:"owed,omitempty"`
}

// ErrUnreadable is that of a journal that nobody can read.
var ErrUnreadable = errors.New("the journal of the migration cannot be read")

// Parse reads what Format has written. Empty text is an empty journal.
func Parse(text string) (Journal, error) {
	var j Journal
	if text == "" {
		return j, nil
	}
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return Journal{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	for _, b := range j.Balancers {
		if err := b.ID.Validate(); err != nil { // it becomes part of requests
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

// Format returns a journal as it is kept.
func Format(j Journal) string {
	text, err := json.Marshal(j)
	if err != nil {
		panic(err) // values of plain types
	}
	return string(text)
}

// String is for people.
func (a Address) String() string {
	if a.PublicIP != "" {
		return fmt.Sprintf("%s (public IP %s, frontend %s)", a.IP, a.PublicIP[strings.LastIndexByte(a.PublicIP, '/')+1:], a.Frontend)
	}
	return fmt.Sprintf("%s (private, frontend %s)", a.IP, a.Frontend)
}

// publicIPs are the public IPs of the journal, in lower case.
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

// clone returns a journal that can be changed.
func (j Journal) clone() Journal {
	j.Balancers = slices.Clone(j.Balancers)
	for at := range j.Balancers {
		j.Balancers[at].Addresses = slices.Clone(j.Balancers[at].Addresses)
	}
	return j
}

// Open reports whether a migration was begun, has not come to its end, and was not taken back.
func (j Journal) Open() bool { return len(j.Balancers) > 0 && !j.Done && j.Undone == nil }

// Gone reports whether a load balancer that was Basic is so no more: whoever asks first gets its private
// addresses.
func (j Journal) Gone(seen Seen) bool {
	return j.Open() && slices.ContainsFunc(j.Balancers, func(b Balancer) bool {
		has, exists := seen.balancer(b.ID)
		told := len(b.Addresses) > 0 && !slices.ContainsFunc(b.Addresses, func(a Address) bool { return !a.Told })
		return !told && (!exists || has.SKU != lb.Basic)
	})
}
