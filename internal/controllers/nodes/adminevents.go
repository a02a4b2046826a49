// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/humanize"
)

// Event reasons for admin states, on Nodes, Services and BackendPools without a Service.
const (
	EventAdminDown     = "LoadBalancerAdminStateDown"
	EventAdminRestored = "LoadBalancerAdminStateRestored"
	EventAdminFailed   = "LoadBalancerAdminStateUpdateFailed"
	EventAdminUpdated  = "LoadBalancerAdminStateUpdated"
)

const maxNodeNames = 12

func (a *AdminStates) recordSubjectEvents(about client.Object, n adminEvent, v adminView) {
	add := func(kind, reason, text string) {
		a.events.Add(about, kind, reason, humanize.FormatMessage(text, humanize.MaxMessage))
	}
	if n.failureText != "" {
		add(corev1.EventTypeWarning, EventAdminFailed, adminFailedText(n))
	}
	if len(n.down) > 0 {
		add(corev1.EventTypeNormal, EventAdminDown, adminDownText(n, v))
	}
	if len(n.back) > 0 {
		add(corev1.EventTypeNormal, EventAdminRestored, adminRestoredText(n))
	}
	if n.recovered {
		add(corev1.EventTypeNormal, EventAdminUpdated, "Load balancer admin states updated after all")
	}
}

func adminDownText(n adminEvent, v adminView) string {
	if n.about.kind == "Node" {
		return fmt.Sprintf("Drains (%s): Down in %s, so no new flows come here", v.drainReasons[n.about.name], humanize.FormatCount(v.pools[n.about.name], "backend pool"))
	}
	byReason := map[string][]string{}
	for _, name := range n.down {
		byReason[v.drainReasons[name]] = append(byReason[v.drainReasons[name]], name)
	}
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		names := byReason[reason]
		verb := "drain"
		if len(names) == 1 {
			verb = "drains"
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s): %s", humanize.FormatCount(len(names), "node"), verb, reason, namesOf(names)))
	}
	return strings.Join(parts, "; ") + ": Down, so no new flows go there"
}

func adminRestoredText(n adminEvent) string {
	if n.about.kind == "Node" {
		return "Drains no more: new flows may come here again"
	}
	return fmt.Sprintf("%s no more: %s: new flows may go there again",
		map[bool]string{true: "1 node drains", false: humanize.FormatCount(len(n.back), "node") + " drain"}[len(n.back) == 1], namesOf(n.back))
}

func adminFailedText(n adminEvent) string {
	const advice = ". Weir tries again until it is done or the node needs it no more."
	text := "Admin states could not be set"
	if n.pools > 1 {
		text += fmt.Sprintf(" in %s, the first of them", humanize.FormatCount(n.pools, "backend pool"))
	}
	text += ": "
	return text + humanize.FormatMessage(n.failureText, humanize.MaxMessage-len(text)-len(advice)) + advice
}

func namesOf(names []string) string {
	text := strings.Join(names[:min(len(names), maxNodeNames)], ", ")
	if n := len(names) - maxNodeNames; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}
