// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/config"
)

func (i *Installation) name() string { return i.Deployment.Namespace + "/" + i.Deployment.Name }

func (i *Installation) desired() int32 { return ptr.Deref(i.Deployment.Spec.Replicas, 1) }

func (i *Installation) isReady() bool {
	s := i.Deployment.Status
	return i.desired() > 0 && s.ReadyReplicas >= i.desired() && s.UpdatedReplicas >= i.desired() && s.ObservedGeneration >= i.Deployment.Generation
}

// CheckDeployment checks the replicas. holder is the leader, which may run outside of the cluster.
func (i *Installation) CheckDeployment(namespace, holder string) Finding {
	switch {
	case !i.Known:
		return Finding{Unknown, "you may not list Deployments of namespace " + namespace, "run it outside of Weir's pod, with the rights of a cluster administrator"}
	case i.Deployment == nil && holder != "":
		return Finding{OK, fmt.Sprintf("namespace %s has none; %s leads, from outside of the cluster or from another namespace", namespace, holder), ""}
	case i.Deployment == nil:
		return Finding{Fail, fmt.Sprintf("namespace %s has no Deployment of Weir, and no process of Weir leads: no Service gets a load balancer", namespace),
			"install it (kubectl apply --server-side -k config, or the chart), or name its namespace: --service-account NAMESPACE/weir"}
	case i.desired() == 0 && holder != "":
		return Finding{OK, fmt.Sprintf("Deployment %s has 0 replicas; %s leads, from outside of the cluster or from another namespace", i.name(), holder), ""}
	case i.desired() == 0:
		return Finding{Fail, fmt.Sprintf("Deployment %s has 0 replicas", i.name()),
			fmt.Sprintf("kubectl -n %s scale deployment %s --replicas=2", i.Deployment.Namespace, i.Deployment.Name)}
	case i.isReady():
		return Finding{OK, fmt.Sprintf("%d of %d replicas are ready, with image %s", i.Deployment.Status.ReadyReplicas, i.desired(), i.Container().Image), ""}
	}
	return i.checkReplicas()
}

func (i *Installation) checkReplicas() Finding {
	s, f := i.Deployment.Status, Finding{Severity: Warn}
	if s.ReadyReplicas == 0 {
		f.Severity = Fail
	}
	f.Why = fmt.Sprintf("%d of %d replicas of Deployment %s are ready", s.ReadyReplicas, i.desired(), i.name())
	if s.ReadyReplicas >= i.desired() {
		f.Why = fmt.Sprintf("a rollout of Deployment %s has not ended: %d of %d replicas have its present template", i.name(), s.UpdatedReplicas, i.desired())
	}
	f.Fix = "the check pods has the cause"
	if c := i.condition(appsv1.DeploymentReplicaFailure); c != nil && c.Status == corev1.ConditionTrue {
		f.Why += "; its pods cannot be created: " + c.Message
		f.Fix = "change what the message names, such as a missing ServiceAccount, a quota or a policy of the namespace"
	} else if len(i.Pods) == 0 && !i.PodsUnseen {
		f.Why += ", and it has no pods"
		f.Fix = fmt.Sprintf("kubectl -n %s describe deployment %s; without an event, see whether kube-controller-manager runs", i.Deployment.Namespace, i.Deployment.Name)
	}
	return f
}

func (i *Installation) condition(kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	at := slices.IndexFunc(i.Deployment.Status.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == kind })
	if at < 0 {
		return nil
	}
	return &i.Deployment.Status.Conditions[at]
}

// FirstFailure returns the most specific cause why Weir does not run, if the Deployment shows one.
func (i *Installation) FirstFailure() (Finding, bool) {
	if i.Deployment == nil || i.isReady() {
		return Finding{}, false
	}
	for _, f := range i.CheckPods() {
		if f.Severity == Fail {
			return f, true
		}
	}
	f := i.CheckDeployment("", "")
	return f, f.Severity == Fail
}

// Container returns the container of the controller.
func (i *Installation) Container() corev1.Container {
	containers := i.Deployment.Spec.Template.Spec.Containers
	at := slices.IndexFunc(containers, func(c corev1.Container) bool { return slices.Contains(c.Args, "controller") })
	if len(containers) == 0 {
		return corev1.Container{}
	}
	return containers[max(0, at)]
}

// flagValue returns the value of a flag of the controller.
func (i *Installation) flagValue(name, byDefault string) string {
	args := i.Container().Args
	for n, arg := range args {
		if value, ok := strings.CutPrefix(arg, name+"="); ok {
			byDefault = value
		} else if arg == name && n+1 < len(args) {
			byDefault = args[n+1]
		}
	}
	return byDefault
}

// Class returns the spec.loadBalancerClass that the Deployment serves; empty means Services without one. It is the default
// if no Deployment is seen.
func (i *Installation) Class() string {
	if i.Deployment == nil {
		return app.LoadBalancerClass
	}
	return i.flagValue("--load-balancer-class", app.LoadBalancerClass)
}

// ElectsLeader reports whether the Deployment's pods write the Lease of a leader.
func (i *Installation) ElectsLeader() bool {
	return i.Deployment != nil && i.flagValue("--leader-elect", "true") != "false"
}

func (i *Installation) configFile() string { return i.flagValue("--config", config.DefaultPath) }
