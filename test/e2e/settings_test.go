// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/lab/process"
)

// The updater's event reasons, which are part of its API.
const (
	updated  = "Normal LoadBalancerBackendPoolUpdated"
	retrying = "Warning LoadBalancerBackendPoolUpdateRetrying"
	failed   = "Warning LoadBalancerBackendPoolUpdateFailed"
)

// countEvents returns the number of a Service's events and the last message by reason.
func (l *lab) countEvents(service string) (times map[string]int, last map[string]string) {
	l.t.Helper()
	var list corev1.EventList
	l.must(l.cluster.List(l.t.Context(), &list, client.InNamespace(l.namespace)))
	times, last = map[string]int{}, map[string]string{}
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == "Service" && e.InvolvedObject.Name == service && strings.HasPrefix(e.Reason, "LoadBalancerBackendPoolUpdate") {
			times[e.Type+" "+e.Reason] += int(max(e.Count, 1))
			last[e.Type+" "+e.Reason] = e.Message
		}
	}
	return times, last
}

// expectEventCounts waits until a Service has exactly these events.
func (l *lab) expectEventCounts(service string, want map[string]int) (last map[string]string) {
	l.t.Helper()
	l.eventually("what "+service+" is told", func() error {
		var times map[string]int
		if times, last = l.countEvents(service); !maps.Equal(times, want) {
			return fmt.Errorf("told %v, want %v", times, want)
		}
		return nil
	})
	return last
}

// expectMetrics waits until the program's metrics with a prefix are exactly these.
func (l *lab) expectMetrics(p *program, prefixes, want []string) {
	l.t.Helper()
	l.eventually("metrics", func() error {
		body, err := get(p.metrics, "/metrics")
		if err != nil {
			return err
		}
		var got []string
		for line := range strings.SplitSeq(body, "\n") {
			// Pools of other tests may have Down members, so admin state metrics are not compared.
			if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(line, prefix) }) && !strings.Contains(line, "admin_state_controller") {
				got = append(got, line)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return nil
	})
}

// terminalSeries are the metrics of terminal results of a Service.
var terminalSeries = []string{"cloudprovider_azure_op_duration_seconds_count", "cloudprovider_azure_op_failure_count", "weir_pool_retries_total"}

const ofMembers = `{request="services_local_update_backend_pool",resource_group="rg",source="local_service_backend_pool_updater",subscription_id="sub"} `

// An explicit 0 disables retries: a retriable failure is reported as Failed at once, and counted.
func TestZeroRetriesInAzureJSON(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","localServicePools":"own","location":"eastus",
		"loadBalancerBackendPoolUpdateIntervalInSeconds":2,"loadBalancerBackendPoolUpdateMaxRetries":0,"enableNodeAdminState":false}`)
	l.pool("web")
	n1, n2 := l.node("n1", "10.0.0.1"), l.node("n2", "10.0.0.2")
	l.must(l.emulator.SetFaults("rules: [{match: {kind: put, maxMatches: 1}, action: {status: 409, code: AnotherOperationInProgress, message: Not now.}}]"))
	l.service("web", n1)
	weir := l.controller("--leader-elect=false")
	last := l.expectEventCounts("web", map[string]int{failed: 1})
	const begin, end = "Backend pool update failed: ", ". To retrigger, cause an endpoint change for the Service (e.g., restart or scale a backing pod)."
	if text := last[failed]; !strings.HasPrefix(text, begin) || !strings.HasSuffix(text, end) || !strings.Contains(text, "409 AnotherOperationInProgress: Not now") {
		t.Errorf("Failed says %q", text)
	}
	l.expectMetrics(weir, terminalSeries, []string{"cloudprovider_azure_op_duration_seconds_count" + ofMembers + "1", "cloudprovider_azure_op_failure_count" + ofMembers + "1"})
	var p v1alpha1.BackendPool
	l.must(l.cluster.Get(t.Context(), key(l.namespace, "web"), &p))
	if s := p.Status; s.RetryBudget == nil || *s.RetryBudget != 0 || *s.RetriesUsed != 0 || s.LastEvent == nil || s.LastEvent.Reason != "LoadBalancerBackendPoolUpdateFailed" {
		t.Errorf("status: budget %v, used %v, told %v", s.RetryBudget, s.RetriesUsed, s.LastEvent)
	}

	l.move("web", n2)
	last = l.expectEventCounts("web", map[string]int{failed: 1, updated: 1})
	if text := last[updated]; text != "Load balancer backend pool updated successfully" {
		t.Errorf("Updated says %q", text)
	}
	l.becomes("web", "10.0.0.2")
	l.expectMetrics(weir, terminalSeries, []string{"cloudprovider_azure_op_duration_seconds_count" + ofMembers + "2", "cloudprovider_azure_op_failure_count" + ofMembers + "1"})
}

// retryPattern is a failure and its consequence. The condition has request id and time.
var retryPattern = regexp.MustCompile(`409 AnotherOperationInProgress: Not now\. Another attempt follows\.$`)

// By default there are retries: the same failure is reported as Retrying, and later resolved.
func TestWithoutTheKeyAFailureIsRetried(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.pool("web")
	n1 := l.node("n1", "10.0.0.1")
	l.must(l.emulator.SetFaults("rules: [{match: {kind: put, maxMatches: 1}, action: {status: 409, code: AnotherOperationInProgress, message: Not now.}}]"))
	l.service("web", n1)
	weir := l.controller("--leader-elect=false")
	last := l.expectEventCounts("web", map[string]int{retrying: 1, updated: 1})
	if text := last[retrying]; !strings.HasPrefix(text, "Backend pool update failed: ") || !retryPattern.MatchString(text) {
		t.Errorf("Retrying says %q", text)
	}
	l.becomes("web", "10.0.0.1")
	l.expectMetrics(weir, terminalSeries, []string{
		"cloudprovider_azure_op_duration_seconds_count" + ofMembers + "1", "cloudprovider_azure_op_failure_count" + ofMembers + "0", `weir_pool_retries_total{reason="conflict"} 1`,
	})
}

// The work queue flags configure its backoff.
func TestTheWorkQueuesKeepToTheirFlags(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	n1 := l.node("n1", "10.0.0.1")
	l.must(l.emulator.SetFaults("rules: [{match: {kind: list}, action: {status: 400, code: InvalidRequestFormat, message: Not now.}}]"))
	l.createLoadBalancerService("web", nil, n1)
	l.controller("--leader-elect=false", "--cluster-name", l.namespace, "--requeue-base-delay", "400ms", "--requeue-max-delay", "800ms", "--requeue-qps", "50", "--requeue-burst", "50")
	var at []time.Time
	l.eventually("a short pause after many tries", func() error {
		at = nil
		lists := l.emulator.Calls(armemu.ByKind(armemu.KindList))
		for _, c := range lists {
			if c.Status == 400 && c.Path == lists[0].Path { // one try may request several lists
				at = append(at, c.Time)
			}
		}
		for i := 6; i < len(at); i++ { // with unlimited doubling the pause before the seventh try takes 12.8 s
			if at[i].Sub(at[i-1]) < 6*time.Second {
				return nil
			}
		}
		return fmt.Errorf("tries at %v", at)
	})
	for i := range len(at) - 1 {
		least := 800 * time.Millisecond
		if i == 0 {
			least = 400 * time.Millisecond
		}
		// Without the flags they would be 5, 10, 20 and 40 ms.
		if elapsed := at[i+1].Sub(at[i]); elapsed < least {
			t.Errorf("try %d comes %s after the one before, and not %s", i+2, elapsed, least)
		}
	}
}

// An invalid backoff ends the start with exit code 2 and names the flag.
func TestABadFlagOfTheWorkQueuesEndsTheStart(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	for flag, value := range map[string]string{"--requeue-base-delay": "0s", "--requeue-max-delay": "1ms", "--requeue-qps": "0", "--requeue-burst": "0"} {
		of, err := process.RunToEnd(t.Context(), nil, filepath.Join(bin, "weir"), "controller", "--kubeconfig", l.cluster.weir, "--config", filepath.Join(l.dir, "azure.json"), "--azure-endpoint", l.url, flag, value)
		if err != nil || of.Code != 2 || !strings.Contains(of.Stdout+of.Stderr, flag) {
			t.Errorf("%s %s: exit code %d, %v\n%s", flag, value, of.Code, err, of.Stdout+of.Stderr)
		}
	}
}
