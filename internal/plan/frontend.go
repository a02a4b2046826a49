// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// place is the address that a frontend stands for; one whose address Azure chooses is a
// place of its own. Services that want the same place share the frontend that is there,
// whoever brought it.
func place(f lb.Frontend) string {
	switch {
	case f.PublicIP != "":
		return strings.ToLower(f.PublicIP)
	case f.Static:
		return strings.ToLower(f.Subnet) + " " + f.PrivateIP.String()
	}
	return strings.ToLower(f.Name)
}

// settle returns the frontends when each Service that is accepted has let go of those that
// nobody wants any more, and has one at every place that it wants.
func settle(in Input, accepted []Share) []lb.Frontend {
	next := make([]lb.Frontend, 0, len(in.Observed.Frontends)+len(accepted))
	for _, f := range in.Observed.Frontends {
		if stays(in, accepted, f) {
			next = append(next, f)
		}
	}
	for _, s := range accepted {
		for _, f := range s.Frontends {
			at := slices.IndexFunc(next, func(is lb.Frontend) bool { return place(is) == place(f) })
			switch {
			case at < 0:
				next = append(next, f)
			case strings.EqualFold(next[at].Name, f.Name) && !sameFrontend(next[at], f):
				next[at] = f
			}
		}
	}
	return next
}

// stays reports whether a frontend is still wanted where it is. One without a Service of
// the plan is foreign, unless a Service of the plan shared it and its own has gone.
func stays(in Input, accepted []Share, f lb.Frontend) bool {
	if in.Observed.Pinned[strings.ToLower(f.Name)] {
		return true
	}
	ours := false
	for _, r := range in.Observed.Rules {
		if strings.EqualFold(r.Frontend, f.Name) {
			if ownerOf(accepted, r.Name) == "" {
				return true // of a rule that stays as it is
			}
			ours = true
		}
	}
	brought := ownerOf(accepted, f.Name)
	if brought == "" && (!ours || ownedByAny(in.Others, f.Name) || ownerOf(in.Shares, f.Name) != "") {
		return true
	}
	wanted := false
	for _, s := range accepted {
		for _, w := range s.Frontends {
			if strings.EqualFold(w.Name, f.Name) && place(w) != place(f) {
				return false // the name is needed elsewhere
			}
			wanted = wanted || place(w) == place(f)
		}
	}
	return wanted
}

// seatOf names the frontend that is at the place of one which a Service wants.
func seatOf(next lb.LoadBalancer, s Share, wanted string) string {
	for _, w := range s.Frontends {
		if w.Name != wanted {
			continue
		}
		for _, f := range next.Frontends {
			if place(f) == place(w) {
				return f.Name
			}
		}
	}
	return wanted
}

// ownerOf returns which of the Services a name is of; empty if of none.
func ownerOf(shares []Share, name string) string {
	for _, s := range shares {
		if owns(s.Owner, name) {
			return s.Owner
		}
	}
	return ""
}

func ownedByAny(owners []string, name string) bool {
	return slices.ContainsFunc(owners, func(owner string) bool { return owns(owner, name) })
}
