// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestAdminStatesAreSetByDefault(t *testing.T) {
	for given, want := range map[string]string{
		"":                           "out-of-service spot-eviction ToBeDeletedByClusterAutoscaler karpenter.sh/disrupted",
		"enableNodeAdminState: null": "out-of-service spot-eviction ToBeDeletedByClusterAutoscaler karpenter.sh/disrupted",
		"enableNodeAdminState: true": "out-of-service spot-eviction ToBeDeletedByClusterAutoscaler karpenter.sh/disrupted",
		"nodeAdminStateTaints: []":   "out-of-service spot-eviction ToBeDeletedByClusterAutoscaler karpenter.sh/disrupted",
		"nodeAdminStateTaints: [b.example/x, a=1]":                 "out-of-service spot-eviction ToBeDeletedByClusterAutoscaler karpenter.sh/disrupted b.example/x a=1",
		"nodeAdminStateTaints: [x=]":                               "out-of-service spot-eviction ToBeDeletedByClusterAutoscaler karpenter.sh/disrupted x=",
		"nodeAdminStateConditions: [DrainInProgress, a.io/Leaves]": "out-of-service spot-eviction ToBeDeletedByClusterAutoscaler karpenter.sh/disrupted DrainInProgress a.io/Leaves",
		"enableNodeAdminState: false":                              "off",
		"enableNodeAdminState: false\nnodeAdminStateTaints: [x]":   "off",
	} {
		c, err := loadWith(t, given)
		got := "off"
		if s := c.Signals(); s != nil {
			got = strings.Join(s.AllReasons(), " ")
		}
		if err != nil || got != want || *c.EnableNodeAdminState != (want != "off") {
			t.Errorf("%q: %s, %v; want %s", given, got, err, want)
		}
	}
	if (AdminState{}).Signals() == nil {
		t.Error("off in a Config that was not loaded")
	}
}

func TestEvictionReporters(t *testing.T) {
	aks := "custom-scheduledevents-consolidated-preempt-plugin-monitor custom-scheduledevents-consolidated-plugin-monitor node-problem-detector"
	for given, want := range map[string]string{
		"":                                       aks + ", 50 up",
		"nodeAdminStateReporters: null":          aks + ", 50 up",
		"nodeAdminStateReporters: []":            ", 50 up",
		"nodeAdminStateReporters: [a/b]":         "a/b, 50 up",
		"nodeAdminStateMinAvailablePercent: 0":   aks + ", 0 up",
		"nodeAdminStateMinAvailablePercent: 100": aks + ", 100 up",
		"nodeAdminStateMinAvailablePercent: 101": `line 3, column 36: key "nodeAdminStateMinAvailablePercent" is 101: want 0 to 100`,
		"nodeAdminStateMinAvailablePercent: -1":  `line 3, column 36: key "nodeAdminStateMinAvailablePercent" is -1: want 0 to 100`,
		"nodeAdminStateReporters: [a, '']":       `line 3, column 26: key "nodeAdminStateReporters" has an empty name: want what kubectl get events shows as the source of the agent's events`,
	} {
		c, err := loadWith(t, given)
		got := ""
		if err == nil {
			s := c.Signals()
			got = fmt.Sprintf("%s, %d up", strings.Join(s.Reporters, " "), s.MinAvailablePercent)
		} else {
			_, got, _ = strings.Cut(err.Error(), ": ")
		}
		if got != want {
			t.Errorf("%q: %s, want %s", given, got, want)
		}
	}
}

func TestInvalidConditions(t *testing.T) {
	for given, want := range map[string]string{
		"[DrainInProgress, Ready]": `key "nodeAdminStateConditions[1]": Ready is True on nodes that serve: remove it`,
		"['']":                     `key "nodeAdminStateConditions[0]" is "": want the type of a Node condition, such as DrainInProgress`,
		"[DrainInProgress=True]":   `is "DrainInProgress=True": want the type`,
		"DrainInProgress":          `key "nodeAdminStateConditions": want a list, got a string`,
	} {
		if _, err := loadWith(t, "nodeAdminStateConditions: "+given); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", given, err, want)
		}
	}
}

func TestInvalidTaints(t *testing.T) {
	for given, want := range map[string]string{
		"[node.kubernetes.io/unschedulable]":      `key "nodeAdminStateTaints[0]": node.kubernetes.io/unschedulable stops new pods, not traffic`,
		"[a, node.kubernetes.io/unschedulable=x]": `key "nodeAdminStateTaints[1]": node.kubernetes.io/unschedulable stops`,
		"['']":               `key "nodeAdminStateTaints[0]" is "": want the key of a taint or "key=value"`,
		"['=x']":             `key "nodeAdminStateTaints[0]" is "=x": want the key`,
		"[a/b/c]":            `is "a/b/c": want the key`,
		"['a=b:NoSchedule']": `is "a=b:NoSchedule": want the key of a taint or "key=value", without an effect`,
		"['a:NoSchedule']":   `is "a:NoSchedule": want the key`,
		"a":                  `key "nodeAdminStateTaints": want a list, got a string`,
		"[1]":                `key "nodeAdminStateTaints[0]": want a string, got a number`,
	} {
		if _, err := loadWith(t, "nodeAdminStateTaints: "+given); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", given, err, want)
		}
	}
}
