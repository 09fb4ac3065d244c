package main

// demoNamespacePlus gives a tenant a namespace, breaks what is in it, and deletes it.
func demoNamespacePlus(s *stage) {
	const quota = "resourcequota/namespaceplus"
	s.say("$ build/bin/namespaceplus, with the permissions of example/namespaceplus/deploy")
	s.start("namespaceplus", "build/bin/namespaceplus",
		"-kubeconfig="+s.kubeconfigFor("namespaceplus-system", "namespaceplus"))

	s.title("1. Create")
	s.show("apply", "-f", "example/namespaceplus/tenant.yaml")
	s.show("wait", "--for=condition=Ready", "namespaceplus/team-a", "--timeout=1m")
	s.show("get", "resourcequota,limitrange,networkpolicy,poddisruptionbudget,rolebinding", "-n", "team-a")

	s.title("2. Somebody raises the quota: the event repairs it")
	s.show("patch", quota, "-n", "team-a", "--type=merge", "-p", `{"spec":{"hard":{"pods":"500"}}}`)
	s.show("wait", "-n", "team-a", "--for=jsonpath={.spec.hard.pods}=20", quota, "--timeout=1m")

	s.title("3. A namespace of somebody else is not taken over")
	s.show("patch", "namespaceplus", "team-a", "--type=merge", "-p", `{"spec":{"deletionPolicy":"Delete"}}`)
	s.show("create", "namespace", "team-b")
	s.show("create", "-f", "example/namespaceplus/taken.yaml")
	s.show("wait", "--for=condition=Ready=false", "namespaceplus/team-b", "--timeout=1m")
	s.show("get", "namespaceplus", "-o", "wide")

	s.title("4. Delete: the garbage collector deletes the namespace")
	s.show("wait", "--for=jsonpath={.metadata.ownerReferences[0].name}=team-a", "namespace/team-a", "--timeout=1m")
	s.show("delete", "namespaceplus", "team-a", "team-b")
	s.show("wait", "--for=delete", "namespace/team-a", "--timeout=2m")
	s.show("get", "namespace", "team-b")
}
