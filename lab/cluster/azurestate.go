// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// azureState is a snapshot of Azure, decoded from its response bodies.
type azureState struct {
	text      string // the complete text
	balancers []loadBalancer
	addresses map[string]publicIP // by folded id
	rules     []securityRule
	// interfaceMembers maps folded pool id and folded interface id to the interface's address.
	interfaceMembers map[string]map[string]string
	// firstConfigIDs are the folded ids of the first IP configuration of each machine.
	firstConfigIDs *[]string
}

type reference struct {
	ID string `json:"id"`
}

func (r *reference) lastSegment() string {
	if r == nil {
		return ""
	}
	return r.ID[strings.LastIndex(r.ID, "/")+1:]
}

type loadBalancer struct {
	Name       string `json:"name"`
	Properties struct {
		Frontends []frontend `json:"frontendIPConfigurations"`
		Pools     []pool     `json:"backendAddressPools"`
		Rules     []rule     `json:"loadBalancingRules"`
		Probes    []probe    `json:"probes"`
	} `json:"properties"`
}

type frontend struct {
	Name       string `json:"name"`
	Properties struct {
		PublicIP *reference `json:"publicIPAddress"`
		Gateway  *reference `json:"gatewayLoadBalancer"`
		Private  string     `json:"privateIPAddress"`
	} `json:"properties"`
}

type pool struct {
	Name       string `json:"name"`
	Properties struct {
		Addresses []member `json:"loadBalancerBackendAddresses"`
		State     string   `json:"provisioningState"`
	} `json:"properties"`
}

// member is an entry of a pool.
type member struct {
	Properties struct {
		IP        string     `json:"ipAddress"`
		Admin     string     `json:"adminState"`
		Interface *reference `json:"networkInterfaceIPConfiguration"`
	} `json:"properties"`
}

type rule struct {
	Name       string `json:"name"`
	Properties struct {
		Protocol     string     `json:"protocol"`
		Frontend     *reference `json:"frontendIPConfiguration"`
		Pool         *reference `json:"backendAddressPool"`
		Probe        *reference `json:"probe"`
		FrontendPort int32      `json:"frontendPort"`
		BackendPort  int32      `json:"backendPort"`
		Floating     bool       `json:"enableFloatingIP"`
		Reset        bool       `json:"enableTcpReset"`
		Idle         int32      `json:"idleTimeoutInMinutes"`
		Distribution string     `json:"loadDistribution"`
	} `json:"properties"`
}

type probe struct {
	Name       string `json:"name"`
	Properties struct {
		Protocol  string `json:"protocol"`
		Port      int32  `json:"port"`
		Path      string `json:"requestPath"`
		Interval  int32  `json:"intervalInSeconds"`
		Threshold int32  `json:"probeThreshold"`
	} `json:"properties"`
}

type publicIP struct {
	Name       string            `json:"name"`
	Tags       map[string]string `json:"tags"`
	Properties struct {
		IP  string `json:"ipAddress"`
		DNS struct {
			Label string `json:"domainNameLabel"`
		} `json:"dnsSettings"`
	} `json:"properties"`
}

type securityRule struct {
	Name       string `json:"name"`
	Properties struct {
		Priority     int      `json:"priority"`
		Direction    string   `json:"direction"`
		Access       string   `json:"access"`
		Protocol     string   `json:"protocol"`
		Source       string   `json:"sourceAddressPrefix"`
		Sources      []string `json:"sourceAddressPrefixes"`
		Destination  string   `json:"destinationAddressPrefix"`
		Destinations []string `json:"destinationAddressPrefixes"`
		Port         string   `json:"destinationPortRange"`
		Ports        []string `json:"destinationPortRanges"`
	} `json:"properties"`
}

// azureCache has the last state read from Azure, and the revision it had at least.
type azureCache struct {
	mu       sync.Mutex
	revision int
	state    azureState
}

// readAzure reads a snapshot of Azure. The caller does not change it.
func (s *Stage) readAzure() (azureState, error) {
	s.azure.mu.Lock()
	defer s.azure.mu.Unlock()
	revision := s.emulator.Revision()
	if s.azure.state.text != "" && revision == s.azure.revision {
		return s.azure.state, nil
	}
	c, err := decodeAzure(s.emulator.Snapshot())
	if err == nil {
		s.azure.revision, s.azure.state = revision, c
	}
	return c, err
}

func decodeAzure(raw []byte) (azureState, error) {
	c := azureState{text: string(raw), addresses: map[string]publicIP{}, interfaceMembers: map[string]map[string]string{}, firstConfigIDs: &[]string{}}
	var resources []struct {
		ID   string          `json:"id"`
		Body json.RawMessage `json:"body"`
	}
	if err := json.Unmarshal(raw, &resources); err != nil {
		return c, fmt.Errorf("snapshot: %w", err)
	}
	for _, r := range resources {
		kind := strings.ToLower(r.ID)
		var err error
		switch {
		case strings.Contains(kind, "/loadbalancers/") && !strings.HasPrefix(kind, strings.ToLower(network)): // in the hub of a test
		case strings.Contains(kind, "/loadbalancers/"):
			var b loadBalancer
			err = json.Unmarshal(r.Body, &b)
			c.balancers = append(c.balancers, b)
		case strings.Contains(kind, "/publicipaddresses/"):
			var p publicIP
			err = json.Unmarshal(r.Body, &p)
			c.addresses[kind] = p
		case strings.Contains(kind, "/networksecuritygroups/"):
			var g struct {
				Properties struct {
					Rules []securityRule `json:"securityRules"`
				} `json:"properties"`
			}
			err = json.Unmarshal(r.Body, &g)
			c.rules = g.Properties.Rules
		default:
			err = c.addMemberships(r.ID, r.Body)
		}
		if err != nil {
			return c, fmt.Errorf("%s: %w", r.ID, err)
		}
	}
	for i, b := range c.balancers {
		c.balancers[i] = c.withMembers(b)
	}
	slices.SortFunc(c.rules, func(a, b securityRule) int { return a.Properties.Priority - b.Properties.Priority })
	return c, nil
}

// publicLabel names a frontend by its public IP, else by its own name; both are independent of the
// Service that created it.
func (f frontend) publicLabel() string {
	if f.Properties.PublicIP != nil {
		return "public IP " + f.Properties.PublicIP.lastSegment()
	}
	return "private " + f.Name
}

func (s azureState) frontendAddress(f frontend) string {
	if f.Properties.PublicIP != nil {
		return s.addresses[strings.ToLower(f.Properties.PublicIP.ID)].Properties.IP
	}
	return f.Properties.Private
}

// formatLines renders Azure's state, one line per frontend, rule, pool, probe or public IP.
func (s azureState) formatLines(foreign func(pool string, ip string) bool) []string {
	var lines []string
	for _, b := range s.balancers {
		if b.Name != unmanagedName && b.Name != outboundName {
			lines = append(lines, b.formatLines(foreign)...)
		}
	}
	for _, p := range s.addresses {
		lines = append(lines, fmt.Sprintf("public IP %s of %q", p.Name, p.Tags["k8s-azure-service"]))
	}
	return lines
}

func (b loadBalancer) formatLines(foreign func(pool string, ip string) bool) []string {
	lines := []string{"load balancer " + b.Name}
	frontends, pools, probes := map[string]string{}, map[string]string{}, map[string]probe{}
	used := map[string]bool{}
	for _, f := range b.Properties.Frontends {
		frontends[f.Name] = f.publicLabel()
		lines = append(lines, b.Name+": frontend "+f.publicLabel())
	}
	for _, p := range b.Properties.Pools {
		members := p.managedMembers(func(ip string) bool { return foreign(b.Name+"/"+p.Name, ip) })
		pools[p.Name] = strings.Join(members, " ")
		used["pool "+p.Name] = len(members) == 0 && len(p.Properties.Addresses) > 0 // retained with its foreign members
	}
	for _, p := range b.Properties.Probes {
		probes[p.Name] = p
	}
	for _, r := range b.Properties.Rules {
		p := r.Properties
		used["pool "+p.Pool.lastSegment()], used["probe "+p.Probe.lastSegment()] = true, true
		lines = append(lines, fmt.Sprintf("%s: %s %s %d to %d%s%s, idle %d, %s, probe %s, members %s", b.Name, frontends[p.Frontend.lastSegment()],
			strings.ToUpper(p.Protocol), p.FrontendPort, p.BackendPort, textIf(p.Floating, " floating"), textIf(p.Reset, " reset"), p.Idle,
			p.Distribution, formatProbe(p.Probe, probes), pools[p.Pool.lastSegment()]))
	}
	for name, members := range pools {
		if !used["pool "+name] {
			lines = append(lines, fmt.Sprintf("%s: pool %s without a rule, members %s", b.Name, name, members))
		}
	}
	for name := range probes {
		if !used["probe "+name] {
			lines = append(lines, fmt.Sprintf("%s: probe %s without a rule", b.Name, name))
		}
	}
	return lines
}

// managedMembers returns the pool members that are not foreign.
func (p pool) managedMembers(foreign func(ip string) bool) []string {
	var members []string
	for _, a := range p.Properties.Addresses {
		switch member := a.Properties.IP; {
		case foreign(member):
		case strings.EqualFold(a.Properties.Admin, "Down"):
			members = append(members, member+"(Down)")
		default:
			members = append(members, member)
		}
	}
	slices.Sort(members)
	return members
}

func textIf(isTrue bool, text string) string {
	if isTrue {
		return text
	}
	return ""
}

func formatProbe(r *reference, probes map[string]probe) string {
	if r == nil {
		return "none"
	}
	p := probes[r.lastSegment()].Properties
	return fmt.Sprintf("%s %d%s %ds×%d", strings.ToUpper(p.Protocol), p.Port, p.Path, p.Interval, p.Threshold)
}

// isAllowed reports whether the security group allows a flow from the Internet.
func (s azureState) isAllowed(from, to netip.Addr, protocol string, port int32) bool {
	for _, r := range s.rules {
		p := r.Properties
		if p.Direction != "Inbound" || p.Protocol != "*" && !strings.EqualFold(p.Protocol, protocol) {
			continue
		}
		if containsAddress(append(p.Sources, p.Source), from) && containsAddress(append(p.Destinations, p.Destination), to) && hasPort(append(p.Ports, p.Port), port) {
			return p.Access == "Allow"
		}
	}
	return false // denied by the group's default rules
}

func containsAddress(prefixes []string, ip netip.Addr) bool {
	for _, text := range prefixes {
		if text == "*" || text == "Internet" || text == ip.String() {
			return true
		}
		if p, err := netip.ParsePrefix(text); err == nil && p.Contains(ip) {
			return true
		}
	}
	return false
}

func hasPort(ranges []string, port int32) bool {
	for _, text := range ranges {
		low, high, several := strings.Cut(text, "-")
		if !several {
			high = low
		}
		a, err1 := strconv.Atoi(low)
		b, err2 := strconv.Atoi(high)
		if text == "*" || err1 == nil && err2 == nil && int(port) >= a && int(port) <= b {
			return true
		}
	}
	return false
}
