// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/privatelink"
	"weir.dev/weir/internal/service"
)

// linked enables Private Link Services and subnet changes.
func linked(set *loadbalancer.Settings) {
	set.Interfaces, set.CanOpenSubnets = true, true
	set.PrivateLinks = lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resources}
}

// linkGroupsOf returns the resource groups of the Private Link Services that a Service requests.
func (s *stage) linkGroupsOf(w *service.Spec) []string {
	if w == nil || w.Link == nil {
		return nil
	}
	return []string{cmp.Or(w.Link.ResourceGroup, s.settings.PrivateLinks.ResourceGroup)}
}

// linked traces a Private Link result once. The caller holds s.mu.
func (p *process) linked(name string, r *record, cl *claim, res loadbalancer.Result) {
	for _, e := range res.Link.Events {
		p.stage.trace("%s: %s: %s", name, e.Reason, wordy(e.Text))
	}
	var texts []string
	for _, e := range res.Link.Warnings {
		texts = append(texts, wordy(e.Text))
	}
	state := res.Link.State
	r.owns = state != nil && state.Reason == privatelink.ReasonPublished
	if state != nil {
		texts = append(texts, state.Reason+": "+wordy(state.Text))
	}
	output := strings.Join(texts, "\n           ")
	if output != "" && output != cl.linked {
		p.stage.trace("%s: %s", name, output)
	}
	cl.linked = output
}

// wordy shortens IDs and aliases.
func wordy(text string) string {
	var words []string
	for word := range strings.FieldsSeq(text) {
		if strings.Contains(word, ".azure.privatelinkservice") {
			word = "(alias)" + word[strings.Index(word, ".azure.privatelinkservice")+len(".azure.privatelinkservice"):]
		}
		if at := strings.LastIndex(word, "/providers/Microsoft.Network/"); at > 0 {
			word = "~/" + word[at+len("/providers/Microsoft.Network/"):]
		}
		words = append(words, guidless(word))
	}
	return strings.Join(words, " ")
}

// guidless removes the suffix that Azure appends to connection names.
func guidless(word string) string {
	name, guid, ok := strings.Cut(word, ".")
	if ok && len(guid) == 36 && strings.Count(guid, "-") == 4 {
		return name
	}
	return word
}

type azureLink struct {
	ID         string            `json:"id"`
	Tags       map[string]string `json:"tags"`
	Properties struct {
		State     string      `json:"provisioningState"`
		Frontends []reference `json:"loadBalancerFrontendIpConfigurations"`
		NAT       []struct {
			Name       string `json:"name"`
			Properties struct {
				Subnet reference `json:"subnet"`
				IP     string    `json:"privateIPAddress"`
				Method string    `json:"privateIPAllocationMethod"`
			} `json:"properties"`
		} `json:"ipConfigurations"`
		Proxy       bool     `json:"enableProxyProtocol"`
		FQDNs       []string `json:"fqdns"`
		Connections []struct {
			Name       string `json:"name"`
			Properties struct {
				State struct {
					Status string `json:"status"`
				} `json:"privateLinkServiceConnectionState"`
			} `json:"properties"`
		} `json:"privateEndpointConnections"`
		Visibility struct {
			Subscriptions []string `json:"subscriptions"`
		} `json:"visibility"`
		Approval struct {
			Subscriptions []string `json:"subscriptions"`
		} `json:"autoApproval"`
	} `json:"properties"`
}

func (l azureLink) spell() string {
	p := l.Properties
	text := short(l.ID) + ":"
	for _, f := range p.Frontends {
		text += " " + isLastLeaving(f.ID)
	}
	for _, n := range p.NAT {
		ip := "any"
		if n.Properties.Method == "Static" {
			ip = n.Properties.IP
		}
		text += fmt.Sprintf(" from %s of %s", ip, isLastLeaving(n.Properties.Subnet.ID))
	}
	if p.Proxy {
		text += " proxy"
	}
	for name, list := range map[string][]string{"fqdns": p.FQDNs} {
		if len(list) > 0 {
			text += " " + name + " " + strings.Join(list, ",")
		}
	}
	if len(p.Visibility.Subscriptions) > 0 {
		text += " visible to " + strings.Join(p.Visibility.Subscriptions, ",")
	}
	if len(p.Approval.Subscriptions) > 0 {
		text += " approves " + strings.Join(p.Approval.Subscriptions, ",")
	}
	for _, c := range p.Connections {
		text += " " + guidless(c.Name) + " " + c.Properties.State.Status
	}
	return text + spellTags(l.Tags) + unless(p.State, "Succeeded") + "\n"
}

func readLink(body json.RawMessage) azureLink {
	var l azureLink
	must(json.Unmarshal(body, &l))
	return l
}
