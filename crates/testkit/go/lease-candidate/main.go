// lease-candidate contends for a Lease with client-go's own leader election and tells what happens as JSON lines
// on its standard output. The tests of our election let it contend with ours.
//
// It gives the lease back and ends when its standard input ends, so it never outlives the test that started it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

type line struct {
	Event    string `json:"event"`
	Identity string `json:"identity,omitempty"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "lease-candidate:", err)
		os.Exit(1)
	}
}

func run() error {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	namespace := flag.String("namespace", "", "namespace of the Lease")
	name := flag.String("name", "", "name of the Lease")
	identity := flag.String("identity", "", "who this candidate is")
	release := flag.Bool("release", true, "give the lease back at the end")
	leaseDuration := flag.Duration("lease-duration", 15*time.Second, "how long others wait")
	renewDeadline := flag.Duration("renew-deadline", 10*time.Second, "how long the leader tries to renew")
	retryPeriod := flag.Duration("retry-period", 2*time.Second, "pause between two attempts")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()

	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: *namespace, Name: *name},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: *identity},
		},
		Name:            *name,
		LeaseDuration:   *leaseDuration,
		RenewDeadline:   *renewDeadline,
		RetryPeriod:     *retryPeriod,
		ReleaseOnCancel: *release,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { tell("leading", *identity) },
			OnStoppedLeading: func() { tell("stopped", *identity) },
			OnNewLeader:      func(leader string) { tell("observed", leader) },
		},
	})
	if err != nil {
		return err
	}
	tell("started", *identity)
	elector.Run(ctx)
	return nil
}

func tell(event, identity string) {
	text, err := json.Marshal(line{Event: event, Identity: identity})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}
