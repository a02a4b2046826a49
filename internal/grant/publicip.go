// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// PublicIPAnnotation on a Namespace lists the public IPs of other namespaces that its Services may
// use, with the right to change their DNS labels.
const PublicIPAnnotation = "weir.dev/allowed-public-ips"

// NamespacesTag on a public IP lists the namespaces that may use it and change its DNS label. It
// overrides the annotation and the recorded owner.
const NamespacesTag = "weir-allowed-namespaces"

// PublicIP is what a namespace may do with a public IP.
type PublicIP struct {
	// Tagged means the tag decides; only then is Use false a denial.
	Tagged bool
	// Use allows using a public IP of another namespace; Label allows changing its DNS label.
	Use, Label bool
}

// ForPublicIP returns what a namespace may do with a public IP, from the Namespace's annotation and
// the public IP's tag. An annotation entry is name, resourceGroup/name,
// subscription/resourceGroup/name or *; missing parts are taken from home. A tag entry is a
// namespace, or * for all; * does not allow changing DNS labels. A list with an invalid entry
// grants nothing.
func ForPublicIP(namespace, annotation string, home, ip lb.ResourceID, tags map[string]string) (PublicIP, error) {
	if tag := lb.Tag(tags, NamespacesTag); tag != "" {
		entries, err := entriesOf(tag, validNamespace)
		if err != nil {
			return PublicIP{Tagged: true}, fmt.Errorf("tag %s of public IP %s: %w", NamespacesTag, ip.Name, err)
		}
		named := slices.Contains(entries, namespace)
		return PublicIP{Tagged: true, Use: named || slices.Contains(entries, all), Label: named}, nil
	}
	if strings.TrimSpace(annotation) == "" {
		return PublicIP{}, nil
	}
	entries, err := entriesOf(annotation, validPublicIP)
	if err != nil {
		return PublicIP{}, fmt.Errorf("annotation %s of Namespace %s: %w", PublicIPAnnotation, namespace, err)
	}
	is := []string{ip.SubscriptionID, ip.ResourceGroup, ip.Name}
	for _, entry := range entries {
		parts := strings.Split(entry, "/")
		want := slices.Concat([]string{home.SubscriptionID, home.ResourceGroup}[:3-len(parts)], parts)
		if entry == all || slices.EqualFunc(want, is, func(a, b string) bool { return lower(a) == lower(b) }) {
			return PublicIP{Use: true, Label: true}, nil
		}
	}
	return PublicIP{}, nil
}

// entriesOf splits a list and validates each entry.
func entriesOf(list string, valid func(string) bool) ([]string, error) {
	var entries []string
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimSpace(entry)
		if entry != all && !valid(entry) {
			return nil, fmt.Errorf("entry %d is %.80q, so the list grants nothing: correct or remove that entry", len(entries)+1, entry)
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

func validPublicIP(entry string) bool {
	parts := strings.Split(entry, "/")
	id := lb.ResourceID{SubscriptionID: "s", ResourceGroup: "g", Type: lb.TypePublicIP}
	fields := []*string{&id.SubscriptionID, &id.ResourceGroup, &id.Name}
	if len(parts) > len(fields) {
		return false
	}
	for i, field := range fields[len(fields)-len(parts):] {
		*field = parts[i]
	}
	return id.Validate() == nil
}

// validNamespace reports whether an entry is an RFC 1123 label.
func validNamespace(entry string) bool {
	letters := func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	return entry != "" && len(entry) <= 63 && !strings.ContainsFunc(entry, letters) && !strings.HasPrefix(entry, "-") && !strings.HasSuffix(entry, "-")
}
