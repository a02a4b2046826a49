// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"regexp"
	"strings"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/controllers/services/servicelb"
)

// remedies are fixes by cause. A cause without one resolves by itself, or its message has the fix.
var remedies = map[string]string{
	NoLeader:             "see why it does not run (weir doctor), or start it",
	NotServed:            "see what keeps Weir from it: weir doctor checks the installation, and the log of the leader has errors",
	NoController:         "give each the class that Weir serves: weir explain service NAME -n NAMESPACE has the commands",
	ProvisionFailed:      "fix what the message names (weir provision show -n NAMESPACE NAME has the failed step); then: weir provision retry-now -n NAMESPACE NAME",
	ProvisionNotAccepted: "fix what the message names: the policy, or dependsOn of the steps. Until then no attempt begins",
	NoAddress:            "see what keeps Weir from it: weir doctor, and the log of the leader",
	GatewayNotServed:     "start weir controller with --gateway-api, and apply its role: kubectl apply --server-side -k config/gateway-api; weir doctor checks the role",
	ListenerNotAccepted:  "change that listener (kubectl edit gateway -n NAMESPACE NAME); the others are served",
	RouteNotAccepted:     "change parentRefs of the route (kubectl edit KIND -n NAMESPACE NAME), or allowedRoutes of the listener",
	BackendNotResolved:   "create what the message names, or change backendRefs (kubectl edit KIND -n NAMESPACE NAME); until then that backend gets no connection",
	NoProvisioner:        "see why it does not run: kubectl get deployments,pods -A -l app.kubernetes.io/component=provisioner; or install it: kubectl apply --server-side -k config/provisioning",

	"AuthorizationFailed":              "assign Weir's identity the role that has the action in the message (az role definition create, az role assignment create): config/azure-role.json, or config/azure-role-interfaces.json for networkInterfaces and virtualMachineScaleSets. A new assignment can take ten minutes; Weir retries by itself",
	"LinkedAuthorizationFailed":        "assign Weir's identity the role config/azure-role.json, or config/azure-role-interfaces.json for network interfaces and scale sets, on the linked resource in the message (az role assignment create --scope). Where the message names deny assignments, roles do not help: docs/guide/aks.md. A new assignment can take ten minutes; Weir retries by itself",
	"AuthenticationFailed":             "Azure rejects Weir's credentials, or has no token for its identity: check aadClientId, aadClientSecret, useManagedIdentityExtension and userAssignedIdentityID of azure.json",
	"ExpiredAuthenticationToken":       "Weir requests a new token by itself. If the error remains, check the clocks of the nodes",
	"InvalidAuthenticationTokenTenant": "tenantId of azure.json is not that of the subscription",
	"SubscriptionNotFound":             "subscriptionId of azure.json names no subscription that Weir's identity can see",
	"ScopeLocked":                      "the resource is locked in Azure: az lock list",
	"RequestDisallowedByPolicy":        "an Azure policy forbids the write: the message names it",
	"TooManyRequests":                  "nothing: Weir resumes when Azure accepts requests again. weir calls shows Weir's requests; the activity log of the subscription shows those of other clients",
	"SubscriptionRequestsThrottled":    "nothing: Weir resumes when Azure accepts requests again. weir calls shows Weir's requests; the activity log of the subscription shows those of other clients",
	"RetryableError":                   "nothing: Weir tries again. If the message names an operation that does not end, see the load balancer's activity log",
	"PreconditionFailed":               "nothing at first: another client has written at the same time, and Weir reads again. If the error remains, find the client in the load balancer's activity log",
	"AnotherOperationInProgress":       "nothing: Weir resumes when the other operation has ended. If it does not end, see the load balancer's activity log",
	armerror.CodeUnreachable:           "see what the connection fails at: names, a proxy, a firewall, or Azure itself (its status page). Weir tries again",
	armerror.CodeOutcomeUnknown:        "nothing at first: Weir reads the state from Azure and retries. If the error remains, see the end of the message: a connection that fails (DNS, a proxy, a firewall), or another client that writes (the load balancer's activity log)",

	"DenyAssignmentAuthorizationFailed": "a deny assignment forbids the write, whatever roles Weir has; the message names the resource group. On AKS it is the lockdown of the node resource group: docs/guide/aks.md describes what works with it",

	v1alpha1.ReasonPaused:                   "when the reason is over: weir resume -n NAMESPACE NAME",
	OverduePause:                            "weir resume -n NAMESPACE NAME. The cause is that no Weir leads, or that its clock is behind",
	v1alpha1.ReasonDryRun:                   "when you have seen enough: kubectl annotate service -n NAMESPACE SERVICE weir.dev/dry-run-",
	v1alpha1.ReasonLoadBalancerNotFound:     "see whether the BackendPool names the right load balancer; then create it in Azure, or delete the BackendPool if it is unused. Weir checks every five minutes. Weir creates the load balancer of its own Services: see what they wait for",
	v1alpha1.ReasonPoolNotFound:             "see whether the BackendPool names the right pool; then create the pool in Azure, or delete the BackendPool if it is unused. Weir checks every five minutes. The pool of a Service of Weir is created with its load balancer: see what the Service waits for",
	v1alpha1.ReasonNotAllowed:               "change what the message names, or delete the BackendPool. An administrator allows a load balancer with kubectl annotate --overwrite namespace NAMESPACE weir.dev/allowed-load-balancers=GROUP/LOAD_BALANCER, and those that the annotation has, separated by commas",
	v1alpha1.ReasonDuplicate:                "delete the BackendPool, or the one that the message names",
	v1alpha1.ReasonServiceNotFound:          "create the Service, or delete the BackendPool",
	v1alpha1.ReasonServiceUnfit:             "give the Service node ports (type LoadBalancer or NodePort), or delete the BackendPool",
	v1alpha1.ReasonInvalid:                  "change what the message names. Of a BackendPool that names what Azure cannot have nothing can be changed: delete it, and create another",
	v1alpha1.ConditionContested:             "find the other client that writes (the activity log of the load balancer) and stop it, or pause the pool: weir pause -n NAMESPACE NAME",
	servicelb.ConditionReasonRemovalBlocked: "if the addresses may go: kubectl annotate KIND -n NAMESPACE NAME " + servicelb.AllowRemovalAnnotation + "=true",
	servicelb.ReasonUnknownAnnotation:       "correct the name, or remove the annotation: docs/reference/service-annotations.md has all names",
	servicelb.ConditionReasonNoEndpoints:    "kubectl get endpointslices -n NAMESPACE -l kubernetes.io/service-name=SERVICE shows which pods the selector of the Service finds, if any, and which are ready",
	servicelb.ConditionReasonPoolEmpty:      "weir explain KIND NAME -n NAMESPACE shows the pool, and why no node has joined it",
	servicelb.ConditionReasonOpen:           "add a source range, or set the missing key that the message names, usually securityGroupName of azure.json, and restart Weir. Until then Weir enforces no restriction: the security groups of the subnet and the network interfaces decide which clients connect",
	servicelb.ConditionReasonPartial:        "change what the message names (kubectl edit KIND -n NAMESPACE NAME). The rest is served",
	servicelb.ConditionReasonNotEnforced:    "attach the security group to the subnet of the nodes. Until then it denies no client, as the message describes",
	servicelb.ConditionReasonNotAccepted:    "fix what the message names (kubectl edit KIND -n NAMESPACE NAME); its Azure resources stay as they are until then",
	servicelb.ConditionReasonRejected:       "the message names what Azure or the load balancer rejects: change that, or what requests it",
	"LoadBalancerContested":                 "find the other client that writes (the activity log of the load balancer), and stop one of the two. To write now: weir retry -n NAMESPACE KIND/NAME",
	NodesLeftOut:                            "give each node what it lacks according to the message, such as an address (kubelet --node-ip, or the cloud node manager): weir explain node NODE",
	AllDown:                                 "weir explain pool NAME -n NAMESPACE --health shows each node, and the reason that Azure gives: pods that are not ready, a security rule, or a wrong probe. Until then Azure sends no new flows",
	NoNodes:                                 "kubectl get nodes --show-labels has the labels of nodes; change the selector (kubectl edit backendpool -n NAMESPACE NAME)",
	NoNodeLeft:                              "give a node what it lacks according to the message, such as an address (kubelet --node-ip, or the cloud node manager): weir explain node NODE. Until then no backend answers",
}

// errorCode is Azure's error code after the status of a response, as messages have it.
var errorCode = regexp.MustCompile(`\b[45]\d\d ([A-Z][A-Za-z]+)\b`)

// HasNoToken reports whether an error message is that the identity gets no token.
func HasNoToken(message string) bool {
	return strings.Contains(message, "AADSTS") || strings.Contains(message, "Credential authentication failed")
}

// causeOf returns the cause of a failure that is more specific than its state: an error code of the message that has a
// remedy, or that the identity gets no token.
func causeOf(state, message string) string {
	if HasNoToken(message) {
		return "AuthenticationFailed"
	}
	for _, found := range errorCode.FindAllStringSubmatch(message, -1) {
		if remedies[found[1]] != "" {
			return found[1]
		}
	}
	return state
}

// RemedyFor returns the fix for an Azure error code or state, or "". It may contain the placeholders KIND,
// NAMESPACE, NAME and SERVICE.
func RemedyFor(cause string) string { return remedies[cause] }

// remedyForRejection is the fix for a write that Azure rejects with a code that has no fix of its own.
func remedyForRejection(cause, message string) string {
	if !strings.Contains(message, " 400 "+cause) && (cause != servicelb.ConditionReasonFailed || !strings.Contains(message, " 400 ")) {
		return ""
	}
	return "the message has what Azure rejects: correct it in azure.json, on the resource that the message names, or in the object. Weir retries by itself; now: weir retry -n NAMESPACE KIND/NAME"
}

// RemedyOf returns the fix for one object, with its names filled in.
func RemedyOf(cause string, w Problem) string {
	names := []string{"NAMESPACE", w.Namespace, "NAME", w.Name, "KIND", strings.ToLower(w.Kind)}
	if of := w.Service; of != "" || w.Kind == "Service" {
		names = append(names, "SERVICE", cmp.Or(of, w.Name))
	}
	return strings.NewReplacer(names...).Replace(cmp.Or(w.fix, RemedyFor(cause), remedyForRejection(cause, w.Why)))
}
