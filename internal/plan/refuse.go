// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// refuse returns the Services that do not fit, by owner, and why. All that are due let go
// of their rules first, so that they may swap ports; one that does not fit keeps its rules,
// which may then be in the way of others. So whoever has a port keeps it, and of those who
// want one that is free the first gets it.
func refuse(in Input) map[string]error {
	refused := map[string]error{}
	for {
		owner, err := in.unfit(refused)
		if err == nil {
			break
		}
		refused[owner] = err
	}
	for again := len(refused) > 0; again; { // some may fit by now
		again = false
		for _, s := range in.Shares {
			why := refused[s.Owner]
			if why == nil {
				continue
			}
			delete(refused, s.Owner)
			if _, err := in.unfit(refused); err != nil {
				refused[s.Owner] = why
				continue
			}
			again = true
		}
	}
	return refused
}

// seat is a rule at the place where its frontend is.
type seat struct {
	lb.Rule
	place string
}

// unfit returns the first Service that does not fit beside the others, those that are
// refused staying as they are.
func (in Input) unfit(refused map[string]error) (owner string, err error) {
	places := map[string]string{}
	for _, f := range in.Observed.Frontends {
		places[strings.ToLower(f.Name)] = place(f)
	}
	var seats []seat
	had := map[string]int{}
	for _, r := range in.Observed.Rules {
		s := ownerOf(in.Shares, r.Name)
		if s != "" {
			had[s]++
		}
		if s == "" || refused[s] != nil {
			seats = append(seats, seat{r, places[strings.ToLower(r.Frontend)]})
		}
	}
	for _, s := range in.Shares {
		if refused[s.Owner] != nil {
			continue
		}
		if err := in.moves(s, seats, places); err != nil {
			return s.Owner, err
		}
		if err := in.poolTaken(s, seats); err != nil {
			return s.Owner, err
		}
		if err := in.poolForeign(s); err != nil {
			return s.Owner, err
		}
		taken := len(seats)
		for _, f := range s.Frontends {
			for _, r := range s.Rules {
				if r.Frontend != f.Name {
					continue
				}
				if err := in.clashes(seats[:taken], seat{r, place(f)}); err != nil {
					return s.Owner, err
				}
				seats = append(seats, seat{r, place(f)})
			}
		}
		if in.MostRules > 0 && len(seats) > in.MostRules && len(s.Rules) > had[s.Owner] {
			return s.Owner, fmt.Errorf("load balancer %s would have %d rules, and may have %d", in.Observed.ID.Name, len(seats), in.MostRules)
		}
	}
	return "", nil
}

// poolTaken refuses a pool of its own to a Service if somebody else has one of that name:
// the members of the two would be mixed.
func (in Input) poolTaken(s Share, seats []seat) error {
	for _, p := range s.Pools {
		for _, other := range seats {
			if contains(s.OwnPools, p.ID.Name) && strings.EqualFold(other.Pool, p.ID.Name) && !owns(s.Owner, other.Name) {
				return fmt.Errorf("%w: pool %s is that of %s", ErrPoolTaken, p.ID.Name, in.called(other))
			}
		}
	}
	return nil
}

// poolForeign refuses a pool of its own to a Service if there is one of that name with
// addresses, which no rule sends flows to and which is on record as nobody's: a pool of a
// Service comes with its rules, so somebody else made it, and would lose what is in it.
func (in Input) poolForeign(s Share) error {
	for _, p := range s.Pools {
		at := slices.IndexFunc(in.Observed.Pools, func(is lb.Pool) bool { return strings.EqualFold(is.ID.Name, p.ID.Name) })
		if at < 0 || !contains(s.OwnPools, p.ID.Name) || contains(s.HeldPools, p.ID.Name) {
			continue
		}
		is := in.Observed.Pools[at]
		used := slices.ContainsFunc(in.Observed.Rules, func(r lb.Rule) bool { return strings.EqualFold(r.Pool, is.ID.Name) })
		if !used && (len(is.Addresses) > 0 || is.NIC) {
			return fmt.Errorf("%w: load balancer %s has a pool %s with addresses, and no rule of a Service sends flows to it. "+
				"Delete or empty that pool, make a BackendPool of it that names the Service, or rename the Service or its namespace",
				ErrPoolForeign, in.Observed.ID.Name, is.ID.Name)
		}
	}
	return nil
}

// ErrPoolForeign says that there is a pool of the name which the Service's own would have.
var ErrPoolForeign = errors.New("the pool that would be the Service's is somebody else's")

// ErrPoolTaken says that the pool which would be the Service's own is somebody else's.
var ErrPoolTaken = errors.New("the names of two Services make the same pool: rename one of them, or its namespace")

// moves refuses to take a frontend to another address under the feet of the Services that
// share it.
func (in Input) moves(s Share, seats []seat, places map[string]string) error {
	for _, f := range s.Frontends {
		is, there := places[strings.ToLower(f.Name)]
		if !there || is == place(f) {
			continue
		}
		if in.Observed.Pinned[strings.ToLower(f.Name)] {
			return fmt.Errorf("frontend %s cannot take another address while an outbound or inbound NAT rule refers to it", f.Name)
		}
		for _, other := range seats {
			if strings.EqualFold(other.Frontend, f.Name) && !owns(s.Owner, other.Name) {
				return fmt.Errorf("frontend %s cannot take another address while %s shares it", f.Name, in.called(other))
			}
		}
	}
	return nil
}

// ErrPortTaken says that another rule has the port of the address already.
var ErrPortTaken = errors.New("the address is shared, and the port is taken")

// clashes reports the first of the rules that Azure would not have beside r.
func (in Input) clashes(seats []seat, r seat) error {
	for _, other := range seats {
		anyPort := r.Transport == lb.All || other.Transport == lb.All
		switch {
		case r.Transport != other.Transport && !anyPort:
		case r.place == other.place && (anyPort || r.FrontendPort == other.FrontendPort):
			return fmt.Errorf("%w: by %s, %s", ErrPortTaken, in.called(other), in.portOf(other))
		case !r.FloatingIP && !other.FloatingIP && strings.EqualFold(r.Pool, other.Pool) && (anyPort || r.BackendPort == other.BackendPort):
			return fmt.Errorf("%s already sends %s flows to port %d of pool %s, and without floating IP no two rules may",
				in.called(other), other.Transport, other.BackendPort, r.Pool)
		}
	}
	return nil
}

// called is what a message calls a rule.
func (in Input) called(s seat) string {
	if in.ServiceOf != nil {
		if of := in.ServiceOf(s.Name); of != "" {
			return "rule " + s.Name + " of Service " + of
		}
	}
	return "rule " + s.Name
}

// portOf is what a message calls the port that a rule has.
func (in Input) portOf(s seat) string {
	text := fmt.Sprintf("%s port %d", s.Transport, s.FrontendPort)
	if s.Transport == lb.All {
		text = "all ports"
	}
	if in.AddressAt != nil {
		if at := in.AddressAt(s.place); at != "" {
			text += " of " + at
		}
	}
	return text
}
