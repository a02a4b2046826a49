// SPDX-License-Identifier: Apache-2.0

package service

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

// PublicIPGrant is what a namespace may do with a public IP.
type PublicIPGrant struct {
	// FromTag means the tag decides; only then is Use false a denial.
	FromTag bool
	// Use allows using a public IP of another namespace; Label allows changing its DNS label.
	Use, Label bool
}

// EvaluatePublicIP returns what a namespace may do with a public IP, from the Namespace's annotation and
// the public IP's tag. An annotation entry is name, resourceGroup/name,
// subscription/resourceGroup/name or *; missing parts are taken from home. A tag entry is a
// namespace, or * for all; * does not allow changing DNS labels. A list with an invalid entry
// grants nothing.
func EvaluatePublicIP(namespace, annotation string, home, ip lb.ResourceID, tags map[string]string) (PublicIPGrant, error) {
	if tag := lb.TagValue(tags, NamespacesTag); tag != "" {
		entries, err := parseEntries(tag, isNamespaceEntry)
		if err != nil {
			return PublicIPGrant{FromTag: true}, fmt.Errorf("tag %s of public IP %s: %w", NamespacesTag, ip.Name, err)
		}
		named := slices.Contains(entries, namespace)
		return PublicIPGrant{FromTag: true, Use: named || slices.Contains(entries, wildcard), Label: named}, nil
	}
	if strings.TrimSpace(annotation) == "" {
		return PublicIPGrant{}, nil
	}
	entries, err := parseEntries(annotation, isPublicIPEntry)
	if err != nil {
		return PublicIPGrant{}, fmt.Errorf("annotation %s of Namespace %s: %w", PublicIPAnnotation, namespace, err)
	}
	id := []string{ip.SubscriptionID, ip.ResourceGroup, ip.Name}
	for _, entry := range entries {
		parts := strings.Split(entry, "/")
		want := slices.Concat([]string{home.SubscriptionID, home.ResourceGroup}[:3-len(parts)], parts)
		if entry == wildcard || slices.EqualFunc(want, id, func(a, b string) bool { return lowerASCII(a) == lowerASCII(b) }) {
			return PublicIPGrant{Use: true, Label: true}, nil
		}
	}
	return PublicIPGrant{}, nil
}

// parseEntries splits a list and validates each entry.
func parseEntries(list string, valid func(string) bool) ([]string, error) {
	var entries []string
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimSpace(entry)
		if entry != wildcard && !valid(entry) {
			return nil, fmt.Errorf("entry %d is %.80q, so the list grants nothing: correct or remove that entry", len(entries)+1, entry)
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

func isPublicIPEntry(entry string) bool {
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

// isNamespaceEntry reports whether an entry is an RFC 1123 label.
func isNamespaceEntry(entry string) bool {
	letters := func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	return entry != "" && len(entry) <= 63 && !strings.ContainsFunc(entry, letters) && !strings.HasPrefix(entry, "-") && !strings.HasSuffix(entry, "-")
}
