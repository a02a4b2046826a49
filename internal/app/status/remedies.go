// SPDX-License-Identifier: Apache-2.0

package status

import (
	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/servicelb"
)

// remedies are what helps, by cause. Messages say what is the matter; these say what to do about it. What
// is not here either ends by itself or is said by its message.
var remedies = map[string]string{
	NoLeader: "start Weir, or see why it does not run: kubectl get pods -A -l app.kubernetes.io/name=weir. With --leader-elect=false it leads without a Lease",

	"AuthorizationFailed":              "give Weir's identity the role in config/azure-role.json; the message names the missing action. Azure takes some minutes",
	"LinkedAuthorizationFailed":        "give Weir's identity the role in config/azure-role.json on what the message names as linked. Azure takes some minutes",
	"AuthenticationFailed":             "Azure does not take Weir's credentials: see aadClientId, aadClientSecret or useManagedIdentityExtension of azure.json",
	"InvalidAuthenticationTokenTenant": "tenantId of azure.json is not that of the subscription",
	"SubscriptionNotFound":             "subscriptionId of azure.json names no subscription that Weir's identity can see",
	"ScopeLocked":                      "somebody has locked the resource in Azure: az lock list",
	"RequestDisallowedByPolicy":        "an Azure policy forbids the write: the message names it",
	"TooManyRequests":                  "nothing: Weir goes on when Azure takes requests again. weir calls shows who asks so much",
	"SubscriptionRequestsThrottled":    "nothing: Weir goes on when Azure takes requests again. weir calls shows who asks so much",
	"RetryableError":                   "nothing: Weir tries again",
	"AnotherOperationInProgress":       "nothing: Weir goes on when the other operation has ended. If it does not end, see the load balancer's activity log",
	fault.CodeUnreachable:              "see what the connection fails at: names, a proxy, a firewall, or Azure itself (its status page). Weir tries again",
	fault.CodeOutcomeUnknown:           "nothing at first: Weir reads what Azure has, and tries again. If it stays, somebody else writes there: see the load balancer's activity log",

	v1alpha1.ReasonPaused:               "when the reason is over: weir resume -n NAMESPACE NAME",
	PauseOver:                           "weir resume -n NAMESPACE NAME. If nobody leads, or Weir's clock is behind, that is why",
	v1alpha1.ReasonDryRun:               "when you have seen enough: kubectl annotate service NAME weir.dev/dry-run-",
	v1alpha1.ReasonLoadBalancerNotFound: "create the load balancer in Azure, or delete the BackendPool; Weir looks every five minutes",
	v1alpha1.ReasonPoolNotFound:         "create the pool in Azure, or delete the BackendPool; Weir looks every five minutes",
	v1alpha1.ReasonDuplicate:            "delete the BackendPool, or the one that the message names",
	v1alpha1.ReasonServiceNotFound:      "create the Service, or delete the BackendPool",
	v1alpha1.ReasonServiceUnfit:         "give the Service node ports (type LoadBalancer or NodePort), or delete the BackendPool",
	v1alpha1.ReasonInvalid:              "change what the message names; a BackendPool that names what Azure cannot have is deleted, and another created",
	v1alpha1.ConditionContested:         "find out who else writes there (the activity log of the load balancer), and have one of the two leave it alone",
	servicelb.WhyHeld:                   "if the addresses may go: kubectl annotate service NAME " + servicelb.AllowRemovalAnnotation + "=true",
	servicelb.WhyNoEndpoints:            "kubectl get endpointslices -l kubernetes.io/service-name=NAME shows which pods there are, if any, and which are ready",
	servicelb.WhyOpen:                   "mend what keeps the restriction from having an effect, or take it out of the Service: until then everybody may connect",
	servicelb.WhyNotGuarded:             "mend what the message says of the security group: until then it does not do what the Service asks for",
	servicelb.WhyRefused:                "the message says what Azure or the load balancer refuses: change that, or the Service",
	"LoadBalancerContested":             "find out who else writes there (the activity log of the load balancer), and have one of the two leave it alone",
	"NodesLeftOut":                      "the message names the nodes and what they lack",
}

// Remedy is what helps against a cause: an error code of Azure, or a state; empty if nothing does, or its
// message says it.
func Remedy(cause string) string { return remedies[cause] }
