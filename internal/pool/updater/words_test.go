// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
)

// addresses parses "n1=10.0.0.1 n2=10.0.0.2/Down".
func addresses(text string) []lb.Address {
	var addresses []lb.Address
	for field := range strings.FieldsSeq(text) {
		name, ip, _ := strings.Cut(field, "=")
		ip, state, _ := strings.Cut(ip, "/")
		addresses = append(addresses, lb.Address{Name: name, IP: netip.MustParseAddr(ip), AdminState: state})
	}
	return addresses
}

func spell(addresses []lb.Address) string {
	var fields []string
	for _, a := range addresses {
		state := ""
		if a.AdminState != "" {
			state = "/" + a.AdminState
		}
		fields = append(fields, a.Name+"="+a.IP.String()+state)
	}
	return strings.Join(fields, " ")
}

func sortedIPs(addresses []lb.Address) []netip.Addr {
	var ips []netip.Addr
	for _, a := range addresses {
		ips = append(ips, a.IP)
	}
	slices.SortFunc(ips, netip.Addr.Compare)
	return ips
}

const (
	interval = 30 * time.Second
	// debounce and mostTogether are those of package schedule.
	debounce     = 250 * time.Millisecond
	mostTogether = 100
)

var start = time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)

func seconds(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
