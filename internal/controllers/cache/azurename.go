// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"weir.dev/weir/internal/lb"
)

// hashPrefixLength is the length of the name before the hash in a label value of at most 63 characters.
const hashPrefixLength = validation.LabelValueMaxLength - len("-00000000")

// PlaceValue converts a load balancer name, which may have 80 characters and end in an underscore, to a label
// value. It ignores case like Azure, and adds a hash if anything else changes.
func PlaceValue(name string) string {
	lower := strings.ToLower(name)
	if len(validation.IsValidLabelValue(lower)) == 0 {
		return lower
	}
	return fmt.Sprintf("%s-%08x", strings.TrimRight(lower[:min(len(lower), hashPrefixLength)], "-_."), hashOf(lower))
}

// betweenParts matches a dot with adjacent dots and dashes: Kubernetes names need a letter or digit on both
// sides of a dot.
var betweenParts = regexp.MustCompile(`[-.]*\.[-.]*`)

// ObjectName converts an Azure name to a part of an object name, ignoring case, with a hash if anything else
// changes. The result must remain stable, because BackendPools have these names.
func ObjectName(name string) string {
	lower := strings.ToLower(name)
	fit := strings.ReplaceAll(lower, "_", "-")
	fit = strings.Trim(strings.ReplaceAll(fit, "..", "."), "-.")
	if len(validation.IsDNS1123Subdomain(fit)) > 0 {
		fit = strings.Trim(betweenParts.ReplaceAllString(fit, "."), "-.")
	}
	if fit == lower {
		return fit
	}
	return fmt.Sprintf("%s-%x", fit, hashOf(lower))
}

func hashOf(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	return h.Sum32()
}

// PoolObjectName returns the name of a BackendPool that Weir creates for a Service or for nodes.
func PoolObjectName(of, balancer string, family lb.Family) string {
	name := of + "." + ObjectName(balancer)
	if family == lb.IPv6 {
		name += ".ipv6"
	}
	return name
}
