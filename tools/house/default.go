// SPDX-License-Identifier: Apache-2.0

package main

// defaultLoops are background loops, cleanups and dry runs: a walk enters one only if it starts there.
func defaultLoops() []string {
	return []string{"updater.(*worker).run", "loadbalancer.(*queue).run", "loadbalancer.(*queue).runCleanups", "servicelb.(*Reconciler).runDryRun"}
}

// defaultWalks are the default walks. Update them when an entry or end function is renamed; a walk with
// an unknown name is reported as not measured.
func defaultWalks() []walk {
	return []walk{
		{"an EndpointSlice, up to the queue of the worker", []segment{
			{[]string{"backendpools.(*Reconciler).servicesOfSlice"}, []string{"backendpools.(*Reconciler).requestIfBound"}},
			{[]string{"backendpools.(*Reconciler).reconcileEndpoints"}, []string{"updater.(*queue).enqueue"}},
		}},
		{"a pool update, from its queue to Azure and back", []segment{
			{[]string{"updater.(*worker).run"}, []string{"azure.(*Client).PutPool", "azure.(*Client).Begin"}},
			{[]string{"updater.(*worker).finishAttempt"}, []string{"updater.(*queue).finishBatch", "backendpool.(*Controller).Report"}},
		}},
		{"a Service, to Azure and back", []segment{
			{[]string{"services.(*Reconciler).Reconcile"}, []string{"loadbalancer.(*queue).addJobs"}},
			{[]string{"loadbalancer.(*queue).run"}, []string{
				"azure.(*Client).PutLoadBalancer", "azure.(*Client).PutPublicIP", "azure.(*Client).PutSecurityGroup",
				"azure.(*Client).DeleteLoadBalancer", "azure.(*Client).DeletePublicIP",
			}},
			{[]string{"loadbalancer.(*LoadBalancers).reportResult"}, []string{"k8s.(*WorkQueue).Add"}},
			{[]string{"servicelb.(*Reconciler).processResult"}, []string{"services.(serviceStatusStore).PublishAddresses"}},
		}},
		{"a Node's taint, up to the queue of the worker", []segment{
			{[]string{"backendpools.(*Reconciler).servicesOnNode", "cache.(*Snapshot).NodeDiffers"}, []string{"backendpools.(*Reconciler).requestIfBound", "cache.(*Snapshot).NodeOf"}},
			{[]string{"backendpools.(*Reconciler).reconcileEndpoints"}, []string{"updater.(*queue).enqueue"}},
		}},
	}
}
