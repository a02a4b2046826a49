// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/shipped"
)

// healthCommand runs a command with --health until its output contains text: the leader keeps what it read for ten seconds.
func (l *lab) healthCommand(weir *program, text string, command ...string) {
	l.t.Helper()
	l.eventually(text, func() error {
		_, out := l.runCommand(append(command, "--health", "--operator-url", "http://"+weir.operator)...)
		if !strings.Contains(out, text) {
			return fmt.Errorf("no %q in\n%s", text, out)
		}
		return nil
	})
}

// doctor runs weir doctor with --health until its output contains text.
func (l *lab) doctor(weir *program, text string) {
	l.t.Helper()
	l.eventually(text, func() error {
		cmd := exec.CommandContext(l.t.Context(), filepath.Join(bin, "weir"), "doctor", "--kubeconfig", l.cluster.admin, "--health", "--operator-url", "http://"+weir.operator)
		out, _ := cmd.CombinedOutput() // other checks may fail
		if !strings.Contains(string(out), text) {
			return fmt.Errorf("no %q in\n%s", text, out)
		}
		return nil
	})
}

// servedWithHealth starts a controller with the Service web on one node.
func servedWithHealth(t *testing.T, role *armemu.Role) (*lab, *program) {
	t.Helper()
	l := newLab(t, armemu.Options{Role: role})
	l.createLoadBalancerService("web", nil, l.node("n1", "10.0.0.1"))
	weir := l.controller("--cluster-name", l.namespace)
	l.ingress("web", 1)
	l.becomes(l.namespace+"-web", "10.0.0.1")
	return l, weir
}

// The leader reads from Azure what its probes report, and weir status and weir doctor name a Service without a member that is up.
func TestHealthOfMembers(t *testing.T) {
	runParallel(t)
	l, weir := servedWithHealth(t, shipped.HealthRoles())
	l.healthCommand(weir, "up (Up_Probe_Success)", "explain", "service", "web")
	l.doctor(weir, "1 BackendPool read; each rule with a probe has a member that is up")
	l.emulator.ReportHealth(func(armemu.ForwardingProbe, netip.Addr) (up, known bool) { return false, true })
	l.healthCommand(weir, "AllDown      Service web\n", "status")
	l.healthCommand(weir, "AllDown: rule "+l.owner("web")+"-TCP-80: Azure's probe reports no member up: down", "status")
	l.doctor(weir, "WARN      health of members\n          Azure's probes report no member up: backendpool "+l.namespace+"/web.")
}

// Without the role for health, commands name the missing action and the role, and show everything else.
func TestHealthWithoutTheRole(t *testing.T) {
	runParallel(t)
	l, weir := servedWithHealth(t, shipped.AzureRole())
	const missing = "Weir's identity lacks the action Microsoft.Network/loadBalancers/loadBalancingRules/health/action: assign it the role config/azure-role-health.json"
	l.healthCommand(weir, "those of 0 BackendPools were read; "+missing, "status")
	l.healthCommand(weir, "Azure's probes: "+missing, "explain", "service", "web")
	l.doctor(weir, "UNKNOWN   health of members\n          "+missing)
}
