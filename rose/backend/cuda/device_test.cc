#include "rose/backend/cuda/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "rose/backend/cuda/cuda_check.h"

// Without a device: what is said of machines that tests do not meet.

namespace bouquet::rose::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(DeviceTest, ADriverThatIsTooOldIsNamedWithWhatIsNeeded) {
  const Status status = NoDevice(cudaErrorInsufficientDriver, 12040, 13010);
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("too old"), HasSubstr("it serves CUDA 12.4"),
                                      HasSubstr("13.1 is needed"), HasSubstr("--device cpu")));
}

TEST(DeviceTest, AMachineWithoutADriverOrADeviceSaysWhich) {
  EXPECT_THAT(NoDevice(cudaErrorInsufficientDriver, 0, 13010).message(),
              HasSubstr("no NVIDIA driver was found"));
  EXPECT_THAT(NoDevice(cudaSuccess, 13010, 13010).message(),
              HasSubstr("the driver shows no device"));
  EXPECT_THAT(NoDevice(cudaErrorSystemNotReady, 13010, 13010).message(),
              HasSubstr(cudaGetErrorString(cudaErrorSystemNotReady)));
}

TEST(DeviceTest, AnotherArchitectureIsNamedWithThoseThatWork) {
  EXPECT_TRUE(CheckCapability(0, "NVIDIA H200", 9, 0).ok());
  for (const auto& [major, minor] : {std::pair(8, 0), std::pair(9, 1), std::pair(10, 0)}) {
    const Status status = CheckCapability(1, "NVIDIA A100", major, minor);
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("H200"), HasSubstr("cuda:1 is NVIDIA A100")));
  }
}

TEST(DeviceTest, ADeviceThatOthersHoldSaysSo) {
  const Status memory = NotOpened(0, cudaErrorMemoryAllocation);
  EXPECT_EQ(memory.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(memory.message(), HasSubstr("no memory left for this process"));
  EXPECT_THAT(NotOpened(0, cudaErrorDevicesUnavailable).message(),
              HasSubstr("held by another process alone"));
  EXPECT_EQ(NotOpened(0, cudaErrorInvalidDevice).code(), StatusCode::kInternal);
}

TEST(CudaCheckTest, AnErrorOfAStepEndsTheProcessAndSaysWhatToDo) {
  const auto fail = [] {
    dup2(STDERR_FILENO, STDOUT_FILENO);  // where the log goes in a test
    CUDA_CHECK(cudaErrorIllegalAddress);
  };
  EXPECT_EXIT(fail(), ::testing::ExitedWithCode(EXIT_FAILURE),
              "the CUDA device failed.*cudaErrorIllegalAddress.*Start the process again");
}

}  // namespace
}  // namespace bouquet::rose::cuda
