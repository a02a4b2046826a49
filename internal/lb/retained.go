// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// RetainedAddress is a private address that Weir keeps, as a frontend without rules, for a Service that left it. A tag of
// the load balancer records it.
type RetainedAddress struct {
	Address netip.Addr
	// Service is namespace/name.
	Service string
	Since   time.Time
	// Subnet is the name of the subnet. Zones are those of the frontend.
	Subnet string
	Zones  []string
}

// retainedPrefix is followed by the address.
const retainedPrefix = "weir-retained-"

// TagName returns the name of the tag.
func (r RetainedAddress) TagName() string { return retainedPrefix + r.Address.String() }

// TagValue returns the value of the tag.
func (r RetainedAddress) TagValue() string {
	return strings.TrimSpace(strings.Join([]string{r.Since.UTC().Format(time.RFC3339), r.Service, r.Subnet, strings.Join(r.Zones, ",")}, " "))
}

// Namespace returns the namespace of the Service.
func (r RetainedAddress) Namespace() string {
	namespace, _, _ := strings.Cut(r.Service, "/")
	return namespace
}

// ParseRetainedAddress parses a tag; false if it is another tag. Missing parts of the value are empty.
func ParseRetainedAddress(name, value string) (r RetainedAddress, ok bool) {
	if len(name) < len(retainedPrefix) || !strings.EqualFold(name[:len(retainedPrefix)], retainedPrefix) {
		return r, false
	}
	addr, err := netip.ParseAddr(name[len(retainedPrefix):])
	if err != nil {
		return r, false
	}
	fields := append(strings.Fields(value), "", "", "", "")
	r.Address, r.Service, r.Subnet = addr, fields[1], fields[2]
	r.Since, _ = time.Parse(time.RFC3339, fields[0])
	if fields[3] != "" {
		r.Zones = strings.Split(fields[3], ",")
	}
	return r, true
}

// RetainedAddresses returns the retained private addresses, sorted by Service, the latest first.
func (b LoadBalancer) RetainedAddresses() []RetainedAddress {
	var addresses []RetainedAddress
	for name, value := range b.Tags {
		if r, ok := ParseRetainedAddress(name, value); ok {
			addresses = append(addresses, r)
		}
	}
	slices.SortFunc(addresses, func(a, b RetainedAddress) int {
		return cmp.Or(strings.Compare(a.Service, b.Service), b.Since.Compare(a.Since), a.Address.Compare(b.Address))
	})
	return addresses
}

// RetainedAt returns the retained address of a private frontend.
func (b LoadBalancer) RetainedAt(f Frontend) (RetainedAddress, bool) {
	if f.PublicIP != "" || !f.PrivateIP.IsValid() {
		return RetainedAddress{}, false
	}
	name := RetainedAddress{Address: f.PrivateIP}.TagName()
	for key, value := range b.Tags {
		if strings.EqualFold(key, name) {
			return ParseRetainedAddress(key, value)
		}
	}
	return RetainedAddress{}, false
}
