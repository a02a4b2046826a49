// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"net/netip"
	"strings"

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
