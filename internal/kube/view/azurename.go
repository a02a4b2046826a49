// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"weir.dev/weir/internal/lb"
)

// hashed is how much of a name stands before its hash in a label: with it, the value has at
// most 63 characters.
const hashed = validation.LabelValueMaxLength - len("-00000000")

// PlaceValue makes the name of a load balancer, which may have up to 80 characters and end
// in an underscore, fit for a label. Capitals make no difference to Azure, and are lost;
// where anything else is, a hash keeps two names apart.
func PlaceValue(name string) string {
	lower := strings.ToLower(name)
	if len(validation.IsValidLabelValue(lower)) == 0 {
		return lower
	}
	return fmt.Sprintf("%s-%08x", strings.TrimRight(lower[:min(len(lower), hashed)], "-_."), hashOf(lower))
}

// betweenParts is what stands around a dot where Kubernetes has one dot alone: the parts of
// its names begin and end with a letter or digit.
var betweenParts = regexp.MustCompile(`[-.]*\.[-.]*`)

// ObjectName makes a name of Azure fit for a part of the name of an object. Capitals are lost;
// where anything else is, a hash keeps two names apart. It never becomes another one for the
// same name: BackendPools that are there bear it.
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

// PoolObjectName is the name of the BackendPool that Weir makes for a Service, or for nodes.
func PoolObjectName(of, balancer string, family lb.Family) string {
	name := of + "." + ObjectName(balancer)
	if family == lb.IPv6 {
		name += ".ipv6"
	}
	return name
}
