// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Azure's state, decoded independently of Weir.
type (
	reference struct {
		ID string `json:"id"`
	}
	azureBalancer struct {
		ID       string `json:"id"`
		Name     string `json:"name"`
		Location string `json:"location"`
		SKU      struct {
			Name string `json:"name"`
		} `json:"sku"`
		Tags       map[string]string `json:"tags"`
		Properties struct {
			State     string          `json:"provisioningState"`
			Frontends []azureFrontend `json:"frontendIPConfigurations"`
			Pools     []azurePool     `json:"backendAddressPools"`
			Probes    []azureProbe    `json:"probes"`
			Rules     []azureRule     `json:"loadBalancingRules"`
		} `json:"properties"`
	}
	azureFrontend struct {
		Name       string `json:"name"`
		Properties struct {
			PublicIP *reference `json:"publicIPAddress"`
			Subnet   *reference `json:"subnet"`
			IP       string     `json:"privateIPAddress"`
			Method   string     `json:"privateIPAllocationMethod"`
			Version  string     `json:"privateIPAddressVersion"`
		} `json:"properties"`
	}
	azurePool struct {
		Name       string `json:"name"`
		Properties struct {
			Addresses []struct {
				Properties struct {
					IP        string     `json:"ipAddress"`
					Interface *reference `json:"networkInterfaceIPConfiguration"`
				} `json:"properties"`
			} `json:"loadBalancerBackendAddresses"`
		} `json:"properties"`
	}
	azureProbe struct {
		Name       string `json:"name"`
		Properties struct {
			Protocol  string `json:"protocol"`
			Port      int    `json:"port"`
			Path      string `json:"requestPath"`
			Interval  int    `json:"intervalInSeconds"`
			Threshold int    `json:"probeThreshold"`
		} `json:"properties"`
	}
	azureRule struct {
		Name       string `json:"name"`
		Properties struct {
			Frontend     reference `json:"frontendIPConfiguration"`
			Pool         reference `json:"backendAddressPool"`
			Probe        reference `json:"probe"`
			Protocol     string    `json:"protocol"`
			FrontendPort int       `json:"frontendPort"`
			BackendPort  int       `json:"backendPort"`
			Idle         int       `json:"idleTimeoutInMinutes"`
			Floating     bool      `json:"enableFloatingIP"`
			Reset        bool      `json:"enableTcpReset"`
			NoSNAT       bool      `json:"disableOutboundSnat"`
			Distribution string    `json:"loadDistribution"`
		} `json:"properties"`
	}
	azurePublicIP struct {
		ID         string            `json:"id"`
		Name       string            `json:"name"`
		Tags       map[string]string `json:"tags"`
		Properties struct {
			State   string     `json:"provisioningState"`
			IP      string     `json:"ipAddress"`
			Version string     `json:"publicIPAddressVersion"`
			Used    *reference `json:"ipConfiguration"`
			Prefix  *reference `json:"publicIPPrefix"`
			DNS     *struct {
				Label string `json:"domainNameLabel"`
			} `json:"dnsSettings"`
			IPTags []struct {
				Type string `json:"ipTagType"`
				Tag  string `json:"tag"`
			} `json:"ipTags"`
		} `json:"properties"`
	}
)

type azureSecurityRule struct {
	Name       string `json:"name"`
	Properties struct {
		Priority         int      `json:"priority"`
		Access           string   `json:"access"`
		Protocol         string   `json:"protocol"`
		Source           string   `json:"sourceAddressPrefix"`
		Sources          []string `json:"sourceAddressPrefixes"`
		Destination      string   `json:"destinationAddressPrefix"`
		Destinations     []string `json:"destinationAddressPrefixes"`
		DestinationPort  string   `json:"destinationPortRange"`
		DestinationPorts []string `json:"destinationPortRanges"`
	} `json:"properties"`
}

func (r azureSecurityRule) spell() string {
	p := r.Properties
	return fmt.Sprintf("  %d %s %s from %s to %s at %s\n", p.Priority, p.Access, p.Protocol,
		p.Source+strings.Join(p.Sources, ","), p.Destination+strings.Join(p.Destinations, ","), p.DestinationPort+strings.Join(p.DestinationPorts, ","))
}

type azureSecurityGroup struct {
	ID         string `json:"id"`
	Properties struct {
		Rules []azureSecurityRule `json:"securityRules"`
	} `json:"properties"`
}

// cloud is the state of load balancers, public IPs and security groups.
type cloud struct {
	balancers []azureBalancer
	ips       []azurePublicIP
	groups    []azureSecurityGroup
	links     []azureLink
}

func (s *stage) cloud() cloud {
	var resources []struct {
		ID   string          `json:"id"`
		Body json.RawMessage `json:"body"`
	}
	must(json.Unmarshal(s.emu.Snapshot(), &resources))
	var c cloud
	for _, r := range resources {
		switch {
		case strings.Contains(r.ID, "/loadBalancers/"):
			var b azureBalancer
			must(json.Unmarshal(r.Body, &b))
			c.balancers = append(c.balancers, b)
		case strings.Contains(r.ID, "/publicIPAddresses/"):
			var ip azurePublicIP
			must(json.Unmarshal(r.Body, &ip))
			c.ips = append(c.ips, ip)
		case strings.Contains(r.ID, "/networkSecurityGroups/"):
			var g azureSecurityGroup
			must(json.Unmarshal(r.Body, &g))
			c.groups = append(c.groups, g)
		case strings.Contains(r.ID, "/privateLinkServices/"):
			c.links = append(c.links, readLink(r.Body))
		}
	}
	return c
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// spell prints one line per part, sorted by name.
func (c cloud) spell() string {
	var out strings.Builder
	addresses := map[string]string{}
	for _, ip := range c.ips {
		addresses[strings.ToLower(ip.ID)] = ip.Properties.IP
	}
	for _, b := range c.balancers {
		fmt.Fprintf(&out, "%s %s %s%s%s\n", short(b.ID), b.SKU.Name, b.Location, spellTags(b.Tags), unless(b.Properties.State, "Succeeded"))
		var lines []string
		for _, f := range b.Properties.Frontends {
			lines = append(lines, f.spell(addresses))
		}
		for _, p := range b.Properties.Pools {
			lines = append(lines, p.spell())
		}
		for _, p := range b.Properties.Probes {
			lines = append(lines, p.spell())
		}
		for _, r := range b.Properties.Rules {
			lines = append(lines, r.spell())
		}
		slices.Sort(lines)
		out.WriteString(strings.Join(lines, ""))
	}
	for _, ip := range c.ips {
		out.WriteString(ip.spell())
	}
	for _, l := range c.links {
		out.WriteString(l.spell())
	}
	for _, g := range c.groups {
		out.WriteString(short(g.ID) + "\n")
		for _, r := range g.Properties.Rules {
			out.WriteString(r.spell())
		}
	}
	if out.Len() == 0 {
		return "nothing\n"
	}
	return out.String()
}

func (f azureFrontend) spell(public map[string]string) string {
	p := f.Properties
	switch {
	case p.PublicIP != nil:
		return fmt.Sprintf("  frontend %s: %s\n", f.Name, public[strings.ToLower(p.PublicIP.ID)])
	case p.Subnet != nil:
		return fmt.Sprintf("  frontend %s: %s %s of %s\n", f.Name, strings.ToLower(p.Method), p.IP, isLastLeaving(p.Subnet.ID))
	}
	return fmt.Sprintf("  frontend %s\n", f.Name)
}

func (p azurePool) spell() string {
	text := "  pool " + p.Name + ":"
	for _, a := range p.Properties.Addresses {
		if text += " " + a.Properties.IP; a.Properties.Interface != nil {
			text += strings.Split(a.Properties.Interface.ID, "/")[8]
		}
	}
	return text + "\n"
}

func (p azureProbe) spell() string {
	x := p.Properties
	return fmt.Sprintf("  probe %s: %s %d%s every %d s, %d times\n", p.Name, x.Protocol, x.Port, x.Path, x.Interval, x.Threshold)
}

func (r azureRule) spell() string {
	p := r.Properties
	text := fmt.Sprintf("  rule %s: %s %s:%d to %s:%d", r.Name, p.Protocol, isLastLeaving(p.Frontend.ID), p.FrontendPort, isLastLeaving(p.Pool.ID), p.BackendPort)
	if p.Floating {
		text += " floating"
	}
	if p.Reset {
		text += " reset"
	}
	if p.Distribution != "Default" {
		text += " " + p.Distribution
	}
	if p.NoSNAT {
		text += " no SNAT"
	}
	text += fmt.Sprintf(" idle %d", p.Idle)
	if p.Probe.ID != "" {
		text += " probe " + isLastLeaving(p.Probe.ID)
	}
	return text + "\n"
}

func (ip azurePublicIP) spell() string {
	p := ip.Properties
	text := short(ip.ID) + ": " + p.IP
	if p.Used == nil {
		text += " unused"
	}
	if p.Prefix != nil {
		text += " of " + isLastLeaving(p.Prefix.ID)
	}
	if p.DNS != nil && p.DNS.Label != "" {
		text += " label " + p.DNS.Label
	}
	for _, tag := range p.IPTags {
		text += " " + tag.Type + "=" + tag.Tag
	}
	return text + spellTags(ip.Tags) + unless(p.State, "Succeeded") + "\n"
}

// spellTags omits the cluster tag.
func spellTags(tags map[string]string) string {
	text := ""
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if key != "k8s-azure-cluster-name" || tags[key] != clusterName {
			text += " " + key + "=" + tags[key]
		}
	}
	return text
}

func unless(text, usual string) string {
	if text == usual {
		return ""
	}
	return " " + text
}

func isLastLeaving(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }
