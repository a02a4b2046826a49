// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"fmt"
	"strings"
)

// ResourceID identifies a top-level resource of Microsoft.Network or Microsoft.Compute. Azure IDs
// are case-insensitive: compare Keys, not IDs.
type ResourceID struct {
	SubscriptionID string
	ResourceGroup  string
	// Type is e.g. Microsoft.Network/publicIPAddresses.
	Type string
	Name string
}

// ARM types of the resources of a load balancer.
const (
	TypePublicIP       = "Microsoft.Network/publicIPAddresses"
	TypePublicIPPrefix = "Microsoft.Network/publicIPPrefixes"
	TypeLoadBalancer   = "Microsoft.Network/loadBalancers"
	TypeSecurityGroup  = "Microsoft.Network/networkSecurityGroups"
)

// String returns the ARM ID. Validate it before use in a URL.
func (id ResourceID) String() string {
	return "/subscriptions/" + id.SubscriptionID + "/resourceGroups/" + id.ResourceGroup +
		"/providers/" + id.Type + "/" + id.Name
}

// Key returns the lower-case ID.
func (id ResourceID) Key() string { return strings.ToLower(id.String()) }

// Validate returns an error for the first invalid part.
func (id ResourceID) Validate() error {
	scope := LoadBalancerID{SubscriptionID: id.SubscriptionID, ResourceGroup: id.ResourceGroup, Name: "n"}
	if err := scope.Validate(); err != nil {
		return err
	}
	if !nameRule.MatchString(id.Name) {
		return fmt.Errorf("name %q: want 1 to 80 letters, digits, '_', '-' or '.', starting with a letter or digit, ending with a letter, digit or '_'", id.Name)
	}
	return nil
}

// ParseResourceID parses and validates an ARM ID of a type. User input must pass through it.
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

// FrontendID identifies a frontend of a load balancer.
type FrontendID struct {
	LoadBalancer LoadBalancerID
	Name         string
}

const frontends = "frontendIPConfigurations"

// String returns the ARM ID.
func (id FrontendID) String() string {
	return id.LoadBalancer.String() + "/" + frontends + "/" + id.Name
}

// ParseFrontendID parses and validates the ARM ID of a frontend.
func ParseFrontendID(text string) (FrontendID, error) {
	parts := strings.Split(strings.TrimSpace(text), "/")
	if len(parts) != 11 || !strings.EqualFold(parts[9], frontends) || !nameRule.MatchString(parts[10]) {
		return FrontendID{}, fmt.Errorf("%q is no id of a frontend of a load balancer", text)
	}
	id, err := ParseResourceID(strings.Join(parts[:9], "/"), TypeLoadBalancer)
	return FrontendID{LoadBalancerID{id.SubscriptionID, id.ResourceGroup, id.Name}, parts[10]}, err
}
