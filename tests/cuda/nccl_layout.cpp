// exec/nccl/nccl.h against the header of NCCL itself, where CMake finds one (tests/CMakeLists.txt): numbers, layouts and signatures. The library
// is opened at run time, so nothing else would notice a difference.
#include <gtest/gtest.h>
#include <nccl.h>

#include <cstddef>
#include <type_traits>

#include "exec/nccl/nccl.h"

namespace foreshard::nccl {
namespace {

// A type of the header -> the one that stands for it here.
template <class Theirs>
struct Ours {
  using type = Theirs;
};
template <>
struct Ours<ncclComm> {
  using type = Comm;
};
template <>
struct Ours<ncclResult_t> {
  using type = Result;
};
template <>
struct Ours<ncclDataType_t> {
  using type = DataType;
};
template <>
struct Ours<ncclRedOp_t> {
  using type = RedOp;
};
template <>
struct Ours<ncclUniqueId> {
  using type = UniqueId;
};
template <>
struct Ours<ncclConfig_t> {
  using type = Config;
};
template <>
struct Ours<cudaStream_t> {
  using type = Library::Stream;
};
template <class Theirs>
struct Ours<Theirs*> {
  using type = typename Ours<Theirs>::type*;
};
template <class Answer, class... Asked>
struct Ours<Answer(Asked...)> {
  using type = typename Ours<Answer>::type(typename Ours<Asked>::type...);
};

#define SAME(member, function)                                                              \
  static_assert(std::is_same_v<decltype(Library::member), Ours<decltype(function)>::type*>, \
                #function " is declared in another way")
SAME(get_unique_id, ncclGetUniqueId);
SAME(comm_init_rank_config, ncclCommInitRankConfig);
SAME(comm_split, ncclCommSplit);
SAME(comm_finalize, ncclCommFinalize);
SAME(comm_destroy, ncclCommDestroy);
SAME(comm_abort, ncclCommAbort);
SAME(comm_async_error, ncclCommGetAsyncError);
SAME(error_string, ncclGetErrorString);
SAME(last_error, ncclGetLastError);
SAME(reduce, ncclReduce);
SAME(broadcast, ncclBroadcast);
SAME(all_reduce, ncclAllReduce);
SAME(reduce_scatter, ncclReduceScatter);
SAME(all_gather, ncclAllGather);
SAME(send, ncclSend);
SAME(receive, ncclRecv);
SAME(group_start, ncclGroupStart);
SAME(group_end, ncclGroupEnd);
#if NCCL_VERSION_CODE >= 21900
SAME(comm_register, ncclCommRegister);
SAME(comm_deregister, ncclCommDeregister);
SAME(memory_allocate, ncclMemAlloc);
SAME(memory_free, ncclMemFree);
#endif
#undef SAME

// Passed by value: both in memory, as trivial structs of that size are.
static_assert(std::is_trivially_copyable_v<UniqueId> && sizeof(UniqueId) == sizeof(ncclUniqueId) &&
              alignof(UniqueId) == alignof(ncclUniqueId));
static_assert(sizeof(Result) == sizeof(ncclResult_t) && sizeof(DataType) == sizeof(ncclDataType_t) &&
              sizeof(RedOp) == sizeof(ncclRedOp_t));

TEST(NcclHeader, NumbersAreThose) {
  const std::pair<Result, ncclResult_t> results[] = {{Result::Success, ncclSuccess},
                                                     {Result::UnhandledCudaError, ncclUnhandledCudaError},
                                                     {Result::SystemError, ncclSystemError},
                                                     {Result::InternalError, ncclInternalError},
                                                     {Result::InvalidArgument, ncclInvalidArgument},
                                                     {Result::InvalidUsage, ncclInvalidUsage},
                                                     {Result::RemoteError, ncclRemoteError},
                                                     {Result::InProgress, ncclInProgress}};
  for (const auto& [ours, theirs] : results) EXPECT_EQ(static_cast<int>(ours), static_cast<int>(theirs));
  EXPECT_EQ(std::size(results), static_cast<std::size_t>(ncclNumResults)) << "a result that is not known here";
  const std::pair<DataType, ncclDataType_t> types[] = {{DataType::Int8, ncclInt8},       {DataType::Uint8, ncclUint8},
                                                       {DataType::Int32, ncclInt32},     {DataType::Uint32, ncclUint32},
                                                       {DataType::Int64, ncclInt64},     {DataType::Uint64, ncclUint64},
                                                       {DataType::Float16, ncclFloat16}, {DataType::Float32, ncclFloat32},
                                                       {DataType::Float64, ncclFloat64}, {DataType::Bfloat16, ncclBfloat16}};
  for (const auto& [ours, theirs] : types) EXPECT_EQ(static_cast<int>(ours), static_cast<int>(theirs));
  const std::pair<RedOp, ncclRedOp_t> sums[] = {
      {RedOp::Sum, ncclSum}, {RedOp::Prod, ncclProd}, {RedOp::Max, ncclMax}, {RedOp::Min, ncclMin}, {RedOp::Avg, ncclAvg}};
  for (const auto& [ours, theirs] : sums) EXPECT_EQ(static_cast<int>(ours), static_cast<int>(theirs));
  EXPECT_EQ(kNoColor, NCCL_SPLIT_NOCOLOR);
  EXPECT_EQ(version_text(NCCL_VERSION_CODE),
            std::to_string(NCCL_MAJOR) + "." + std::to_string(NCCL_MINOR) + "." + std::to_string(NCCL_PATCH));
  EXPECT_EQ(kOldest, NCCL_VERSION(2, 26, 2));
}

#define AT(ours, theirs)                                                        \
  EXPECT_EQ(offsetof(Config, ours), offsetof(ncclConfig_t, theirs)) << #theirs; \
  EXPECT_EQ(sizeof(Config::ours), sizeof(ncclConfig_t::theirs)) << #theirs

// A newer library takes the first `size` bytes of its own struct from ours.
TEST(NcclHeader, TheConfigurationIsABeginningOfTheirs) {
  AT(size, size);
  AT(magic, magic);
  AT(version, version);
  AT(blocking, blocking);
  AT(cga_cluster_size, cgaClusterSize);
  AT(min_ctas, minCTAs);
  AT(max_ctas, maxCTAs);
  AT(net_name, netName);
  AT(split_share, splitShare);
#if NCCL_VERSION_CODE >= 22700
  AT(traffic_class, trafficClass);
#endif
  EXPECT_LE(sizeof(Config), sizeof(ncclConfig_t));
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const Config ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(ours.version, static_cast<unsigned>(NCCL_VERSION(2, 18, 0)));
  EXPECT_EQ(ours.size, sizeof(Config));
  EXPECT_EQ(ours.cga_cluster_size, theirs.cgaClusterSize);
  EXPECT_EQ(ours.min_ctas, theirs.minCTAs);
  EXPECT_EQ(ours.max_ctas, theirs.maxCTAs);
  EXPECT_EQ(ours.net_name, theirs.netName);
  EXPECT_EQ(ours.split_share, theirs.splitShare);
#if NCCL_VERSION_CODE >= 22700
  EXPECT_EQ(ours.traffic_class, theirs.trafficClass);
#endif
}
#undef AT

}  // namespace
}  // namespace foreshard::nccl
