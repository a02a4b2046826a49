// SPDX-License-Identifier: Apache-2.0

package membership

import "strings"

// Labels that exclude a node from every pool. If Weir sets admin states, a recorded member that serves is Down first, see
// RetainLeaving; control-plane nodes leave at once. The first is a
// Kubernetes label; the second marks nodes not managed by Azure.
const (
	labelExclude = "node.kubernetes.io/exclude-from-external-load-balancers"
	labelManaged = "kubernetes.azure.com/managed"
)

// controlPlaneLabels mark control-plane nodes; the last two are legacy labels.
var controlPlaneLabels = []struct{ key, value string }{
	{"node-role.kubernetes.io/control-plane", ""},
	{"node-role.kubernetes.io/master", ""},
	{"kubernetes.io/role", "master"},
}

// Excluded returns why a node with these labels is excluded from load balancers, or "". Control-plane nodes
// are excluded unless azure.json sets excludeMasterFromStandardLB to false.
func Excluded(labels map[string]string, controlPlaneToo bool) string {
	if _, ok := labels[labelExclude]; ok {
		return "it is labelled " + labelExclude
	}
	if strings.EqualFold(labels[labelManaged], "false") {
		return "it is labelled " + labelManaged + "=false"
	}
	if !controlPlaneToo {
		return ""
	}
	for _, l := range controlPlaneLabels {
		if value, ok := labels[l.key]; ok && (l.value == "" || value == l.value) {
			return "it is a control-plane node (label " + l.key + ")"
		}
	}
	return ""
}

// ExcludedByLabel reports whether a node is excluded by a label that may change while the node serves.
// Control-plane labels do not count.
func ExcludedByLabel(labels map[string]string) bool { return Excluded(labels, false) != "" }
