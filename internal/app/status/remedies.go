// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/servicelb"
)

// remedies are fixes by cause. A cause without one resolves by itself, or its message has the fix.
var remedies = map[string]string{
	NoLeader:      "see why it does not run, or start it: kubectl get deployments,pods -A -l app.kubernetes.io/name=weir",
	NoProvisioner: "see why it does not run: kubectl get deployments,pods -A -l app.kubernetes.io/component=provisioner; or install it: kubectl apply --server-side -k config/provisioning",

	"AuthorizationFailed":              "give Weir's identity the role in config/azure-role.json of Weir's release (az role definition create, az role assignment create); the message names the action that is missing. A new assignment takes Azure some minutes, and Weir tries again by itself",
	"LinkedAuthorizationFailed":        "give Weir's identity the role in config/azure-role.json of Weir's release on what the message names as linked (az role assignment create --scope). A new assignment takes Azure some minutes, and Weir tries again by itself",
	"AuthenticationFailed":             "Azure does not take Weir's credentials: see aadClientId, aadClientSecret or useManagedIdentityExtension of azure.json",
	"InvalidAuthenticationTokenTenant": "tenantId of azure.json is not that of the subscription",
	"SubscriptionNotFound":             "subscriptionId of azure.json names no subscription that Weir's identity can see",
	"ScopeLocked":                      "somebody has locked the resource in Azure: az lock list",
	"RequestDisallowedByPolicy":        "an Azure policy forbids the write: the message names it",
	"TooManyRequests":                  "nothing: Weir goes on when Azure takes requests again. weir calls shows what Weir asks, the activity log of the subscription who else does",
	"SubscriptionRequestsThrottled":    "nothing: Weir goes on when Azure takes requests again. weir calls shows what Weir asks, the activity log of the subscription who else does",
	"RetryableError":                   "nothing: Weir tries again",
	"AnotherOperationInProgress":       "nothing: Weir goes on when the other operation has ended. If it does not end, see the load balancer's activity log",
	fault.CodeUnreachable:              "see what the connection fails at: names, a proxy, a firewall, or Azure itself (its status page). Weir tries again",
	fault.CodeOutcomeUnknown:           "nothing at first: Weir reads what Azure has, and tries again. If it stays, see what the message ends with: a connection that fails (names, a proxy, a firewall), or somebody else who writes there (the load balancer's activity log)",

	v1alpha1.ReasonPaused:               "when the reason is over: weir resume -n NAMESPACE NAME",
	PauseOver:                           "weir resume -n NAMESPACE NAME. If nobody leads, or Weir's clock is behind, that is why",
	v1alpha1.ReasonDryRun:               "when you have seen enough: kubectl annotate service -n NAMESPACE SERVICE weir.dev/dry-run-",
	v1alpha1.ReasonLoadBalancerNotFound: "see whether the BackendPool names the right load balancer; then create it in Azure, or delete the BackendPool if nobody needs it. Weir looks every five minutes",
	v1alpha1.ReasonPoolNotFound:         "see whether the BackendPool names the right pool; then create the pool in Azure, or delete the BackendPool if nobody needs it. Weir looks every five minutes",
	v1alpha1.ReasonDuplicate:            "delete the BackendPool, or the one that the message names",
	v1alpha1.ReasonServiceNotFound:      "create the Service, or delete the BackendPool",
	v1alpha1.ReasonServiceUnfit:         "give the Service node ports (type LoadBalancer or NodePort), or delete the BackendPool",
	v1alpha1.ReasonInvalid:              "change what the message names. Of a BackendPool that names what Azure cannot have nothing can be changed: delete it, and create another",
	v1alpha1.ConditionContested:         "find out who else writes there (the activity log of the load balancer), and stop that; or have Weir leave the pool alone: weir pause -n NAMESPACE NAME",
	servicelb.WhyHeld:                   "if the addresses may go: kubectl annotate service -n NAMESPACE NAME " + servicelb.AllowRemovalAnnotation + "=true",
	servicelb.WhyNoEndpoints:            "kubectl get endpointslices -n NAMESPACE -l kubernetes.io/service-name=NAME shows which pods there are, if any, and which are ready",
	servicelb.WhyPoolEmpty:              "kubectl describe backendpools -A shows why no node has joined the pool",
	servicelb.WhyOpen:                   "set what the message says is missing, mostly securityGroupName of azure.json, and restart Weir. Until then Weir keeps nobody out",
	servicelb.WhyPartial:                "change what the message names (kubectl edit service -n NAMESPACE NAME). The Service is served without that part",
	servicelb.WhyNotGuarded:             "put the security group on the subnet of the nodes. Until then it keeps nobody out, as far as the message says",
	servicelb.WhyNotAccepted:            "change what the message names (kubectl edit service -n NAMESPACE NAME); what Azure has of the Service stays until then",
	servicelb.WhyRefused:                "the message says what Azure or the load balancer refuses: change that, or the Service",
	"LoadBalancerContested":             "find out who else writes there (the activity log of the load balancer), and have one of the two leave it alone",
	NodesLeftOut:                        "give each node what the message says it lacks, such as an address (kubelet --node-ip, or the cloud node manager): weir explain node NODE",
	NoNodeLeft:                          "give a node what the message says it lacks, such as an address (kubelet --node-ip, or the cloud node manager): weir explain node NODE. Until then nothing answers there",
}

// Remedy returns the fix for an Azure error code or state, or "". It may contain the placeholders NAMESPACE,
// NAME and SERVICE.
func Remedy(cause string) string { return remedies[cause] }

// RemedyOf returns the fix for one object, with its names filled in.
func RemedyOf(cause string, w Wrong) string {
	names := []string{"NAMESPACE", w.Namespace, "NAME", w.Name}
	if w.Service != "" {
		names = append(names, "SERVICE", w.Service)
	}
	return strings.NewReplacer(names...).Replace(Remedy(cause))
}
