// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"net/netip"
	"strings"

	"weir.dev/weir/internal/lb"
)

// addresses parses "n1=10.0.0.1 n2=10.0.0.2/Down".
func addresses(text string) []lb.Address {
	var all []lb.Address
	for field := range strings.FieldsSeq(text) {
		name, ip, _ := strings.Cut(field, "=")
		ip, state, _ := strings.Cut(ip, "/")
		all = append(all, lb.Address{Name: name, IP: netip.MustParseAddr(ip), AdminState: state})
	}
	return all
}

func spell(all []lb.Address) string {
	var fields []string
	for _, a := range all {
		state := ""
		if a.AdminState != "" {
			state = "/" + a.AdminState
		}
		fields = append(fields, a.Name+"="+a.IP.String()+state)
	}
	return strings.Join(fields, " ")
}
