// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// LossReport is a lost address.
type LossReport struct {
	Service string `json:"service,omitempty"`
	Address string `json:"address"`
	// PublicIP is the deleted one, or empty if only the Service loses the address.
	PublicIP string `json:"publicIP,omitempty"`
}

// addDeletedIPs records deleted public IPs.
func (report *Report) addDeletedIPs(v formatter, changes []ResourceChange[lb.PublicIP]) {
	for _, c := range changes {
		if c.Before.Etag != "" && c.After.Etag == "" && c.Before.Address.IsValid() {
			report.Losses = append(report.Losses, LossReport{Service: v.publicIPChange(c).Service, Address: c.Before.Address.String(), PublicIP: c.Before.ID.Name})
		}
	}
}

// AddLosses records the addresses that a Service would lose, and reports whether there are any.
func (report *Report) AddLosses(service string, shows, next []netip.Addr) (lost bool) {
	for _, a := range shows {
		if slices.Contains(next, a) {
			continue
		}
		lost = true
		at := slices.IndexFunc(report.Losses, func(l LossReport) bool { return l.Address == a.String() })
		if at < 0 {
			report.Losses = append(report.Losses, LossReport{Service: service, Address: a.String()})
		} else if report.Losses[at].Service == "" {
			report.Losses[at].Service = service
		}
	}
	return lost
}

func (w *textWriter) writeLosses(p Report) {
	var deleted, others []string
	for _, l := range p.Losses {
		if l.PublicIP != "" {
			deleted = append(deleted, l.Address+" (public IP "+l.PublicIP+")"+serviceSuffix(l.Service))
		} else {
			others = append(others, l.Address+serviceSuffix(l.Service))
		}
	}
	if n := len(deleted); n > 0 {
		w.writeLine(0, "!", pluralize(n, "1 public IP is DELETED, its address cannot be had again:", fmt.Sprintf("%d public IPs are DELETED, their addresses cannot be had again:", n)))
		w.writeList(deleted)
	}
	if n := len(others); n > 0 {
		w.writeLine(0, "!", pluralize(n, "1 address is LOST to its Service, which gets another:", fmt.Sprintf("%d addresses are LOST to their Services, which get others:", n)))
		w.writeList(others)
	}
}

func pluralize(n int, singular, several string) string {
	if n == 1 {
		return singular
	}
	return several
}

func (w *textWriter) writeList(lines []string) {
	slices.SortFunc(lines, strings.Compare)
	for _, line := range lines {
		w.writeLine(1, "", line)
	}
}
