// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"fmt"
	"strings"
	"time"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/updater"
)

// DescribePool names a pool in messages.
func DescribePool(id lb.PoolID) string {
	return fmt.Sprintf("pool %s of load balancer %s", id.Name, id.LoadBalancer.Name)
}

// pendingWriteMessage explains why the record contains more than the pool.
const pendingWriteMessage = "a write whose response was lost may still be applied, because the pool's etag does not exclude it: its members remain recorded, and are removed if they appear"

func updatingMessage(i diff.Intent) string {
	var action []string
	if i.Add > 0 {
		action = append(action, fmt.Sprintf("adding %d", i.Add))
	}
	if i.Remove > 0 {
		action = append(action, fmt.Sprintf("removing %d", i.Remove))
	}
	if i.Update > 0 {
		action = append(action, "changing the admin state of "+fmt.Sprint(i.Update))
	}
	return strings.Join(action, ", ") + fmt.Sprintf("; the pool held %s", humanize.FormatCount(i.Observed, "address"))
}

func retryingMessage(r updater.Report) string {
	text := "the last attempt failed: " + humanize.FormatFault(r.Fault, humanize.MaxMessage-160) + "; " +
		fmt.Sprintf("retry %d of %d follows at %s", r.RetriesUsed, r.Budget, humanize.FormatTime(r.RetryAt))
	if r.NextEligibleAt.After(r.At) {
		text += ", because of Azure's Retry-After"
	}
	return text
}

func adminRetryingMessage(r updater.Report) string {
	text := "the last attempt failed: " + humanize.FormatFault(r.Fault, humanize.MaxMessage-160) + "; Weir retries the admin states at " + humanize.FormatTime(r.AdminRetryAt)
	if r.NextEligibleAt.After(r.At) {
		text += ", because of Azure's Retry-After"
	}
	return text
}

func retryAfterMessage(until time.Time) string {
	return "Azure accepts no request before " + humanize.FormatTime(until)
}

func failedMessage(r updater.Report) string {
	text := "the last attempt failed: " + humanize.FormatFault(r.Fault, humanize.MaxMessage-220) + "; Weir retries "
	if !r.NextCheckAt.IsZero() {
		text += "at " + humanize.FormatTime(r.NextCheckAt) + " or "
	}
	text += "when the members change"
	if r.NextEligibleAt.After(r.At) {
		text += ", but not before " + humanize.FormatTime(r.NextEligibleAt) + ", because of Azure's Retry-After"
	}
	return text
}

func removalFailedMessage(r updater.Report) string {
	text := "the last attempt to take its addresses out of the pool failed: " + humanize.FormatFault(r.Fault, humanize.MaxMessage-160) + "; another follows "
	if r.NextEligibleAt.After(r.At) {
		return text + "after " + humanize.FormatTime(r.NextEligibleAt) + ", because of Azure's Retry-After"
	}
	return text + "within a minute"
}

func missingPoolMessage(r updater.Report) (reason, message string) {
	where := r.Pool.LoadBalancer
	if r.Fault != nil && (r.Fault.Code == "ResourceNotFound" || r.Fault.Code == "ResourceGroupNotFound") {
		return v1alpha1.ReasonLoadBalancerNotFound,
			fmt.Sprintf("Azure has no load balancer %s in resource group %s of subscription %s", where.Name, where.ResourceGroup, where.SubscriptionID)
	}
	return v1alpha1.ReasonPoolNotFound, fmt.Sprintf("load balancer %s in resource group %s has no backend pool %s", where.Name, where.ResourceGroup, r.Pool.Name)
}

func wrongMembersMessage(r updater.Report) (reason, message string) {
	if r.Fault != nil && r.Fault.Code == diff.CodeAddressPool {
		return v1alpha1.ReasonAddressPool, DescribePool(r.Pool) + " holds IP addresses, and its members are to be network interfaces, which Azure does not mix: name another pool, or set membership to Address"
	}
	if r.Fault != nil && r.Fault.Code == diff.CodeOutboundPool {
		return v1alpha1.ReasonNICPool, DescribePool(r.Pool) + " has outbound rules, and is the way out of the machines in it: name another pool"
	}
	if r.Fault != nil && r.Fault.Code == diff.CodeOverlappingNodes {
		return v1alpha1.ReasonOverlappingNodes, overlapMessage(r) + ". Nothing was written: " + overlapRemedy
	}
	message = DescribePool(r.Pool) + " holds network interfaces, which Weir does not write where members are to be addresses: name a pool of IP addresses, or, if it is the cluster's, write the key loadBalancerBackendPoolConfigurationType into azure.json, and restart Weir: with nodeIPConfiguration its network interfaces are kept up, with nodeIP it becomes a pool of addresses"
	if r.StatesInSync {
		message += ". Nodes that leave are Down in it all the same"
	}
	return v1alpha1.ReasonNICPool, message
}

// removalMessage returns the condition once Weir's addresses are no longer wanted.
func removalMessage(binding Binding, hasMembers bool) (reason, message string) {
	reason, message = binding.Reason, binding.Message
	if reason == "" { // an active BackendPool is being deleted
		reason, message = v1alpha1.ReasonUpdating, "this BackendPool is being deleted"
	}
	switch {
	case !binding.HasRecord:
		return reason, message + "; Weir wrote nothing to the pool"
	case hasMembers:
		return reason, message + "; its addresses are being removed from the pool"
	}
	return reason, message + "; its addresses were removed from the pool"
}
