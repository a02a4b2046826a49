// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/rehearse"
)

// Loss is a lost address.
type Loss struct {
	Service string `json:"service,omitempty"`
	Address string `json:"address"`
	// PublicIP is the deleted one, or empty if only the Service loses the address.
	PublicIP string `json:"publicIP,omitempty"`
}

// loses records deleted public IPs.
func (p *Plan) loses(v speller, changes []rehearse.Changed[lb.PublicIP]) {
	for _, c := range changes {
		if c.Was.Etag != "" && c.Is.Etag == "" && c.Was.Address.IsValid() {
			p.Losses = append(p.Losses, Loss{Service: v.publicIP(c).Service, Address: c.Was.Address.String(), PublicIP: c.Was.ID.Name})
		}
	}
}

// Lose records the addresses that a Service would lose, and reports whether there are any.
func (p *Plan) Lose(service string, shows, will []netip.Addr) (lost bool) {
	for _, a := range shows {
		if slices.Contains(will, a) {
			continue
		}
		lost = true
		at := slices.IndexFunc(p.Losses, func(l Loss) bool { return l.Address == a.String() })
		if at < 0 {
			p.Losses = append(p.Losses, Loss{Service: service, Address: a.String()})
		} else if p.Losses[at].Service == "" {
			p.Losses[at].Service = service
		}
	}
	return lost
}

func (w *writer) losses(p Plan) {
	var deleted, others []string
	for _, l := range p.Losses {
		if l.PublicIP != "" {
			deleted = append(deleted, l.Address+" (public IP "+l.PublicIP+")"+of(l.Service))
		} else {
			others = append(others, l.Address+of(l.Service))
		}
	}
	if n := len(deleted); n > 0 {
		w.line(0, "!", pick(n, "1 public IP is DELETED, its address cannot be had again:", fmt.Sprintf("%d public IPs are DELETED, their addresses cannot be had again:", n)))
		w.list(deleted)
	}
	if n := len(others); n > 0 {
		w.line(0, "!", pick(n, "1 address is LOST to its Service, which gets another:", fmt.Sprintf("%d addresses are LOST to their Services, which get others:", n)))
		w.list(others)
	}
}

func pick(n int, one, several string) string {
	if n == 1 {
		return one
	}
	return several
}

func (w *writer) list(lines []string) {
	slices.SortFunc(lines, strings.Compare)
	for _, line := range lines {
		w.line(1, "", line)
	}
}
