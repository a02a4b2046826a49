// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"fmt"
	"strings"
)

// ResourceID names a resource of Microsoft.Network or Microsoft.Compute that has no
// parent but its resource group. Azure compares the parts without regard to case, so
// compare Keys, never IDs.
type ResourceID struct {
	SubscriptionID string
	ResourceGroup  string
	// Type is such as Microsoft.Network/publicIPAddresses.
	Type string
	Name string
}

// The types of the resources that a load balancer needs.
const (
	TypePublicIP       = "Microsoft.Network/publicIPAddresses"
	TypePublicIPPrefix = "Microsoft.Network/publicIPPrefixes"
	TypeLoadBalancer   = "Microsoft.Network/loadBalancers"
	TypeSecurityGroup  = "Microsoft.Network/networkSecurityGroups"
)

// String returns the ARM resource id. Only a validated id is fit for a URL.
func (id ResourceID) String() string {
	return "/subscriptions/" + id.SubscriptionID + "/resourceGroups/" + id.ResourceGroup +
		"/providers/" + id.Type + "/" + id.Name
}

// Key returns the id folded to lower case, for use as a map key.
func (id ResourceID) Key() string { return strings.ToLower(id.String()) }

// Validate reports the first part that Azure would not take as a name.
func (id ResourceID) Validate() error {
	of := LoadBalancerID{SubscriptionID: id.SubscriptionID, ResourceGroup: id.ResourceGroup, Name: "n"}
	if err := of.Validate(); err != nil {
		return err
	}
	if !nameRule.MatchString(id.Name) {
		return fmt.Errorf("name %q: want 1 to 80 letters, digits, '_', '-' or '.', starting with a letter or digit, ending with a letter, digit or '_'", id.Name)
	}
	return nil
}

// ParseResourceID reads an ARM id of a resource type. Text from people becomes part of a
// request in no other way than through it.
func ParseResourceID(text, kind string) (ResourceID, error) {
	parts := strings.Split(strings.TrimSpace(text), "/")
	want := strings.Split(kind, "/")
	fixed := []struct {
		at   int
		word string
	}{{0, ""}, {1, "subscriptions"}, {3, "resourceGroups"}, {5, "providers"}, {6, want[0]}, {7, want[1]}}
	ok := len(parts) == 9
	for _, f := range fixed {
		ok = ok && strings.EqualFold(parts[f.at], f.word)
	}
	if !ok {
		return ResourceID{}, fmt.Errorf("%q is no id of this form: /subscriptions/…/resourceGroups/…/providers/%s/…", text, kind)
	}
	id := ResourceID{SubscriptionID: parts[2], ResourceGroup: parts[4], Type: kind, Name: parts[8]}
	return id, id.Validate()
}
