// Command go-peer is a cloud-controller-manager as cloud vendors write them: the upstream Go framework
// over the REST API of the simulated cloud. Benchmarks run it beside cloudkeel, so it does nothing
// slower than a careful author would.
package main

import (
	"os"

	"k8s.io/apimachinery/pkg/util/wait"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	_ "k8s.io/component-base/metrics/prometheus/workqueue"
	"k8s.io/klog/v2"
)

func main() {
	ccmOptions, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		klog.Fatalf("options: %v", err)
	}
	command := app.NewCloudControllerManagerCommand(ccmOptions, newCloud, app.DefaultInitFuncConstructors,
		names.CCMControllerAliases(), cliflag.NamedFlagSets{}, wait.NeverStop)
	os.Exit(cli.Run(command))
}

func newCloud(config *config.CompletedConfig) cloudprovider.Interface {
	settings := config.ComponentConfig.KubeCloudShared.CloudProvider
	cloud, err := cloudprovider.InitCloudProvider(settings.Name, settings.CloudConfigFile)
	if err != nil || cloud == nil {
		klog.Fatalf("cloud provider %q: %v", settings.Name, err)
	}
	return cloud
}
